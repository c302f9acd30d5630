"""What the doctor prints."""

from __future__ import annotations

from garra.checks.finding import Finding
from garra.faces.cli.doctor import lines, summary


def test_a_remedy_that_two_findings_share_is_said_once() -> None:
    found = [
        Finding("config", "bad", "the configuration is not valid", "garra.json", "mend it"),
        Finding("config", "bad", "line 2: a value is missing", "garra.json", "mend it"),
        Finding("model", "bad", "no key", "agents", "export KEY"),
    ]
    told = "\n".join(lines(found))
    assert told.count("mend it") == 1
    assert told.index("line 2") < told.index("mend it") < told.index("no key") < told.index("export KEY")


def test_the_last_line_is_not_better_than_what_stands_above_it() -> None:
    well, note = Finding("a", "ok", "x"), Finding("a", "note", "x")
    warn, bad = Finding("a", "warn", "x"), Finding("a", "bad", "x")
    assert summary([well, note]) == "Nothing stands in the way."
    assert summary([well, warn, warn]) == "It works, but look at 2 things above."
    assert summary([warn, bad]) == "1 thing to mend."
