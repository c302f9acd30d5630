"""What the doctor prints."""

from __future__ import annotations

from garra.checks.finding import Finding
from garra.faces.cli.doctor import lines


def test_a_remedy_that_two_findings_share_is_said_once() -> None:
    found = [
        Finding("config", "bad", "the configuration is not valid", "garra.json", "mend it"),
        Finding("config", "bad", "line 2: a value is missing", "garra.json", "mend it"),
        Finding("model", "bad", "no key", "agents", "export KEY"),
    ]
    told = "\n".join(lines(found))
    assert told.count("mend it") == 1
    assert told.index("line 2") < told.index("mend it") < told.index("no key") < told.index("export KEY")
