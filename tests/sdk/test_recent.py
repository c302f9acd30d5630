"""What stays in memory, and what makes room."""

from __future__ import annotations

from garra.sdk.recent import Recent


def test_what_was_not_used_for_longest_makes_room() -> None:
    kept: Recent[str, int] = Recent(100)
    for number, key in enumerate("abcde"):
        kept.put(key, number, 20)
    kept.put("a", 0, 20)
    kept.put("f", 5, 20)
    assert [kept.get(key) for key in "abcdef"] == [0, None, 2, 3, 4, 5]
    assert len(kept) == 5


def test_small_ones_do_not_drive_out_a_large_one_nor_it_them() -> None:
    kept: Recent[str, int] = Recent(100)
    kept.put("large", 1, 250)
    for number in range(50):
        kept.put(f"s{number}", number, 25)
    assert kept.get("large") == 1
    assert [kept.get(f"s{number}") for number in (45, 46, 49)] == [None, 46, 49]
    kept.put("other", 2, 200)
    assert (kept.get("large"), kept.get("other"), kept.get("s49")) == (None, 2, 49)


def test_one_alone_is_kept_whatever_it_takes_and_may_grow_out_of_its_kind() -> None:
    kept: Recent[str, int] = Recent(100)
    kept.put("a", 1, 10)
    kept.put("a", 1, 4_000)
    assert (kept.get("a"), len(kept)) == (1, 1)
    assert (kept.pop("a"), kept.pop("a"), kept.get("a"), len(kept)) == (1, None, None, 0)
