"""A short run of the fuzzer; the long one is `python -m tests.fuzz.shell_lines`."""

from __future__ import annotations

from tests.fuzz.shell_lines import SEEDS, alike, judged, lines


def test_no_line_of_a_short_run_smuggles() -> None:
    passed = [(text, found) for text in (*SEEDS, *lines(7, 5_000)) if (found := judged(text)) is not None]
    assert len(passed) > 50
    single = [(text, found) for text, found in passed if found.plan and len(found.plan) == 1]
    echoes = [each for each in single if each[1].plan and each[1].plan[0].argv[0] == "echo"]
    assert all(alike(text, found) for text, found in echoes[:20] if found.plan and not found.plan[0].redirections)
