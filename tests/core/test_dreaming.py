"""Which lines are worth keeping: gathered, weighed, and of each the reason."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from garra.core import dreaming
from garra.core.dreaming import (
    Bar,
    Candidate,
    Noted,
    Recall,
    about,
    clipped,
    credited,
    diary_day,
    digest,
    known,
    noted,
    proposed,
    ranked,
    said,
    staged,
    themes,
)

NOW = round(datetime(2026, 5, 10, 12, tzinfo=UTC).timestamp() * 1000)
DAY = "memory/2026-05-09.md"
PAGE = """# Saturday

- The cabin's wifi password is tulip-4471
  and the router stands in the hall
* ok
1. [x] Ann plays the cello on Sundays

What is the name of the dog?
```
- code that is no note at all
```
## Light Sleep
- staged by another program last night
## Notes
<!-- a comment of somebody's -->
<!-- from a conversation with telegram:default:7 that read the page https://x.example/ -->
- Bob would like to move to Lisbon soon
<!-- from a conversation -->
- The boiler was mended by Carla <!-- hidden --> on Friday
- The old town hall opens at nine <!-- from memory/2026-05-01.md#L3 with telegram:default:9 -->"""


def test_lines_of_a_diary_with_where_they_come_from() -> None:
    lines = noted(PAGE, DAY)
    assert [(each.line, each.text, each.owner, each.read) for each in lines] == [
        (3, "The cabin's wifi password is tulip-4471 and the router stands in the hall", "", ""),
        (6, "Ann plays the cello on Sundays", "", ""),
        (17, "Bob would like to move to Lisbon soon", "telegram:default:7", "the page https://x.example/"),
        (19, "The boiler was mended by Carla on Friday", "", ""),
        (20, "The old town hall opens at nine", "telegram:default:9", ""),
    ]
    assert {each.day for each in lines} == {"2026-05-09"}
    assert [each.outside for each in lines] == [False, False, True, False, True]
    assert noted("", DAY) == ()


def test_a_diary_is_known_by_its_name() -> None:
    assert diary_day("memory/2026-05-09-trip.md") == "2026-05-09"
    assert diary_day("memory/dreaming/deep/2026-05-09.md") == diary_day("MEMORY.md") == ""


def test_a_note_within_a_line_ends_nothing() -> None:
    assert dreaming.plain("- one <!-- from a conversation --> two --> <!-- three") == "one two three"
    assert dreaming.plain("- # a heading in a list") == "a heading in a list"


def test_what_was_said_is_a_line_unless_it_asks_or_says_little() -> None:
    assert said("My sister lives in Ghent now", "sessions/a.jsonl", 4) == Noted(
        "My sister lives in Ghent now", "sessions/a.jsonl", 4
    )
    assert said("where does my sister live now?", "sessions/a.jsonl", 4) is None
    assert said("ok", "sessions/a.jsonl", 4) is None
    assert said("thank you", "sessions/a.jsonl", 4) is None


def test_a_search_counts_for_the_lines_with_its_words_or_for_all() -> None:
    text = "- The cabin has a red stove\n- Ann plays the cello well\n"
    assert credited(text, "which stove", DAY, 4) == ((digest("The cabin has a red stove"), 4),)
    assert [line for _, line in credited(text, "instruments", DAY, 4)] == [4, 5]
    assert len(credited("- 我的猫叫做小黑，住在上海\n", "小黑", DAY, 1)) == 1
    told = "User: My sister lives in Ghent\nAssistant: Nice."
    assert credited(told, "sister", "sessions/a.jsonl", 9) == ((digest("My sister lives in Ghent"), 9),)
    assert credited("User: ok", "ok", "sessions/a.jsonl", 9) == ()
    assert credited("Assistant: hello there, my friend", "x", "sessions/a.jsonl", 9) == ()


def line(text: str, day: str = "2026-05-09", owner: str = "", number: int = 1) -> Noted:
    return Noted(text, f"memory/{day}.md", number, day, owner)


def recall(text: str, count: int = 4, ways: int = 4, **more: int) -> Recall:
    queries = tuple(f"q{at}" for at in range(ways))
    return Recall(digest(text), DAY, 1, count, float(count), queries, ("2026-05-09", "2026-05-10"), NOW, **more)


WIFI = "The cabin's wifi password is tulip-4471"


def test_light_takes_lines_that_say_the_same_together_and_the_owners_first() -> None:
    rows = staged(
        [line(WIFI, owner="telegram:default:7"), line(f"{WIFI.upper()}!", "2026-05-08"), line(WIFI), line("Other")],
        {digest(WIFI): recall(WIFI)},
    )
    assert [(each.noted.text, each.days, each.signals) for each in rows] == [
        (WIFI, ("2026-05-08", "2026-05-09"), 6),
        ("Other", ("2026-05-09",), 1),
    ]
    assert not rows[0].noted.outside


def test_rem_finds_what_several_of_the_owners_lines_are_about() -> None:
    rows = staged(
        [line("The cabin needs a roof"), line("The cabin has mice"), line("Ann sings in a choir"),
         line("The choir is a trap", owner="telegram:default:7")], {}
    )  # fmt: skip
    found = themes(rows)
    assert [(each.word, each.count, len(each.texts)) for each in found] == [("cabin", 2, 2)]
    assert [about(each, found) for each in rows] == [True, True, False, False]


def test_deep_proposes_what_was_found_often_and_says_why_not() -> None:
    rows = staged([line(WIFI), line("Ann plays the cello on Sundays")], {digest(WIFI): recall(WIFI, light=9, rem=9)})
    best, other = ranked(rows, NOW, Bar())
    assert best.why == ()
    assert 0.75 < best.score <= 1
    assert best.parts["relevance"] == 1.0
    assert best.parts["boost"] == 0.0
    assert other.why == (
        f"its score is {other.score:.2f}, below 0.75", "it was met 1 of 3 times", "0 of 3 different questions found it",
    )  # fmt: skip
    met = staged([line(WIFI)], {digest(WIFI): recall(WIFI, light=1, rem=9, phase_at=NOW)})
    assert ranked(met, NOW, Bar())[0].parts["boost"] == pytest.approx(0.11)


def test_a_line_is_not_proposed_twice_nor_when_it_is_old_or_kept() -> None:
    rows = staged([line(WIFI)], {digest(WIFI): recall(WIFI)})
    there = known(
        "# Memory\n\n- the cabin's WIFI password is tulip-4471.\n", {digest(WIFI): "it was refused in the dream x"}
    )
    assert ranked(rows, NOW, Bar(), there)[0].why == ("it was refused in the dream x", "it is kept already")
    old = ranked([Candidate(line(WIFI, "2026-01-01"), ("2026-01-01",))], NOW, Bar(score=0, recalls=0, queries=0))
    assert old[0].why == ("nobody wrote or sought it for 30 days",)
    assert dreaming.age(Candidate(line(WIFI)), NOW) > 10_000


def test_a_proposal_holds_so_many_lines_and_no_more_than_memory_has_room_for() -> None:
    rows = [line(f"the {word} is kept in the shed") for word in ("rope", "spade", "ladder")]
    bar = Bar(score=0, recalls=0, queries=0, most=1)
    taken, left = proposed(ranked(staged(rows, {}), NOW, bar), bar, 10_000)
    assert (len(taken), [each.why for each in left]) == (1, [("one proposal holds 1 lines",)] * 2)
    taken, left = proposed(ranked(staged(rows, {}), NOW, Bar(score=0, recalls=0, queries=0)), bar, 50)
    assert taken == ()
    assert left[0].why == ("MEMORY.md is full: what is longer is cut when it is told",)
    taken, left = proposed(ranked(staged(rows, {}), NOW, Bar()), bar, 10_000)
    assert taken == ()


def test_long_lines_are_cut() -> None:
    assert clipped("short", 8) == "short"
    assert clipped("word " * 40, 8).endswith("…")
    assert len(clipped("word " * 40, 8)) <= 33
