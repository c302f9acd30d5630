"""The text that Prometheus reads."""

from __future__ import annotations

from garra.core.exposition import Family, Spread, text, word


def test_counters_gauges_and_histograms_as_text() -> None:
    families = [
        Family("turns_total", "counter", "Turns.", ("outcome",), ((("ok",), 3.0), (('a"b\\c\nd',), 0.5))),
        Family("empty", "gauge", "Nothing."),
        Family("took_seconds", "histogram", "How long.", (), (((), Spread((0.1, 1.0), (1, 2, 3), 9.25)),)),
        Family("process_cpu_seconds_total", "counter", "CPU.", (), (((), 1e20),)),
    ]
    assert text(families, "garra") == (
        "# HELP garra_turns_total Turns.\n# TYPE garra_turns_total counter\n"
        'garra_turns_total{outcome="ok"} 3\ngarra_turns_total{outcome="a\\"b\\\\c\\nd"} 0.5\n'
        "# HELP garra_took_seconds How long.\n# TYPE garra_took_seconds histogram\n"
        'garra_took_seconds_bucket{le="0.1"} 1\ngarra_took_seconds_bucket{le="1"} 3\n'
        'garra_took_seconds_bucket{le="+Inf"} 6\ngarra_took_seconds_sum 9.25\ngarra_took_seconds_count 6\n'
        "# HELP process_cpu_seconds_total CPU.\n# TYPE process_cpu_seconds_total counter\n"
        "process_cpu_seconds_total 1e+20\n"
    )


def test_a_label_says_a_short_word_or_nothing() -> None:
    texts = ("openai/gpt-4.1:free", "", "agent:main:telegram:direct:123", "two words", "x" * 90)
    assert [word(each) for each in texts] == ["openai/gpt-4.1:free", "none", "other", "other", "other"]
