"""The caps hold everywhere; there is no list of exceptions."""

from __future__ import annotations

import statistics

from tests.architecture import caps

SUPERVISION = {
    "io/tasks.py",  # the task supervisor
    "turns/kernel.py",  # one turn of a channel
    "gateway/dispatch.py",  # one request of a client
    "domains/plugins/load.py",  # one plugin's code
    "domains/tools/pipeline.py",  # one tool call
    "domains/hooks/dispatch.py",  # one hook
    "domains/context/host.py",  # one context engine
}


def test_files_stay_small() -> None:
    over = [
        f"{path.relative_to(caps.ROOT)}: {lines}"
        for folder, cap in ((caps.SOURCE, caps.FILE_LINES), (caps.TESTS, caps.TEST_FILE_LINES))
        for path in caps.files(folder)
        if (lines := path.read_text().count("\n")) > cap
    ]
    assert not over


def test_functions_stay_small() -> None:
    every = [function for path in caps.files(caps.SOURCE) for function in caps.functions(path)]
    over = [
        f"{f.where} {f.name}: {f.lines} lines, {f.positional} positional, {f.parameters} parameters"
        for f in every
        if f.lines > caps.FUNCTION_LINES or f.positional > caps.POSITIONAL or f.parameters > caps.PARAMETERS
    ]
    assert not over
    assert statistics.median(f.lines for f in every) <= 8


def test_only_supervisors_catch_everything() -> None:
    broad = [
        f"{path.relative_to(caps.ROOT)}:{line} except {kind}"
        for path in caps.files(caps.SOURCE)
        if str(path.relative_to(caps.SOURCE)) not in SUPERVISION
        for line, kind in caps.handlers(path)
    ]
    assert not broad


def test_few_types_are_waved_through() -> None:
    texts = [path.read_text() for path in caps.files(caps.SOURCE)]
    lines = sum(text.count("\n") for text in texts)
    ignores = sum(text.count("type: ignore") for text in texts)
    assert ignores <= max(1, lines // 1000)


def test_names_say_what_things_are() -> None:
    vague = ("Manager", "Helper", "Handler", "Service", "Mixin", "Util", "Utils")
    found = [
        f"{path.relative_to(caps.ROOT)}: {line.strip()}"
        for path in caps.files(caps.SOURCE)
        for line in path.read_text().splitlines()
        if line.startswith("class ") and line.split("(")[0].split(":")[0].removeprefix("class ").endswith(vague)
    ]
    assert not found
