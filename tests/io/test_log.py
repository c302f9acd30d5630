from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from garra.io import log
from garra.io.log import Bounds, Sinks, setup, tail


@dataclass(frozen=True)
class Places:
    logs: Path


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    root = logging.getLogger()
    level, before = root.level, list(root.handlers)
    yield Places(tmp_path / "logs")
    for handler in set(root.handlers) - set(before):
        handler.close()
        root.removeHandler(handler)
    root.setLevel(level)


def entries(places: Places) -> list[dict[str, str]]:
    return [json.loads(line) for path in reversed(log.files(places.logs)) for line in path.read_text().splitlines()]


def test_a_line_is_an_object_with_time_level_subsystem_and_message(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    written = setup(places, "info", stderr=True)
    logging.getLogger("garra.gateway.server").warning("port %d is %s", 1, "taken")
    logging.getLogger("garra.x").debug("not wanted")
    try:
        raise ValueError("with\nlines")
    except ValueError:
        logging.getLogger("other").exception("it broke")
    written.close()
    first, second = entries(places)
    assert first["time"].endswith("+00:00")
    assert (first["level"], first["subsystem"], first["message"]) == ("warn", "gateway.server", "port 1 is taken")
    assert "ValueError: with\nlines" in second["error"]
    assert "warn  gateway.server: port 1 is taken" in capsys.readouterr().err
    assert oct(log.files(places.logs)[0].stat().st_mode)[-3:] == "600"


def test_what_is_shown_of_a_message_is_one_line_whatever_is_in_it(
    places: Places, capsys: pytest.CaptureFixture[str]
) -> None:
    written = setup(places, "info", stderr=True)
    forged = "08:00:00 info  gateway: all is well"
    logging.getLogger("x").warning("a file %s", f"a\r\n{forged}\x1b[2J")
    try:
        raise ValueError(f"with\n{forged}")
    except ValueError:
        logging.getLogger("x").exception("it broke")
    written.close()
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].endswith(rf"warn  x: a file a\r\n{forged}\x1b[2J")
    assert not [line for line in shown if line.startswith(forged)]
    assert entries(places)[0]["message"] == f"a file a\r\n{forged}\x1b[2J"


def test_known_secrets_never_reach_the_file(places: Places) -> None:
    written = setup(places)
    written.hide(["hunter2-token"])
    logging.getLogger("x").error("sent hunter2-token and sk-abcdefghijklmnopqrstuvw")
    try:
        raise RuntimeError("bad hunter2-token")
    except RuntimeError:
        logging.getLogger("x").exception("failed")
    written.close()
    text = log.files(places.logs)[0].read_text()
    assert "hunter2" not in text
    assert "sk-abc" not in text


def test_files_are_bounded_in_size_number_and_days(places: Places) -> None:
    places.logs.mkdir(parents=True)
    for day in range(1, 5):
        old = places.logs / f"garra-2020-01-0{day}.log"
        old.write_text("x\n")
        os.utime(old, (day, day))
    bounds = Bounds(file_bytes=2_000, days=3, total_bytes=8_000)
    for _ in range(60):  # one writer after another, as after restarts: each batch is one write
        written = setup(places, bounds=bounds)
        logging.getLogger("x").error("y" * 300)
        written.close()
        logging.getLogger().removeHandler(written)
    found = log.files(places.logs)
    assert all(path.stat().st_size <= 2_000 for path in found)
    assert sum(path.stat().st_size for path in found) <= 8_000 + 2_000
    assert "garra-2020-01-02.log" not in {path.name for path in found}


def test_tail_gives_the_newest_and_goes_on_from_a_cursor(places: Places) -> None:
    assert tail(places).lines == ()
    places.logs.mkdir(parents=True)
    path = places.logs / "garra-2026-01-01.log"
    path.write_text("".join(f"{number}\n" for number in range(10)) + "half")
    first = tail(places, limit=3)
    assert (first.lines, first.cursor, first.cut) == (("7", "8", "9"), 20, True)
    with path.open("a") as stream:
        stream.write(" done\n")
    more = tail(places, first.cursor)
    assert (more.lines, more.reset, more.cut) == (("half done",), False, False)
    assert tail(places, more.cursor).lines == ()
    assert tail(places, 10_000).reset
    assert tail(places, limit=0).lines == ()


def test_tail_of_a_huge_file_begins_at_a_whole_line(places: Places) -> None:
    places.logs.mkdir(parents=True)
    (places.logs / "garra-2026-01-01.log").write_text("".join(f"{number:09d}\n" for number in range(200_000)))
    found = tail(places, limit=1_000_000)
    assert found.cut
    assert found.lines[-1] == "000199999"
    assert all(len(line) == 9 for line in found.lines)


async def test_lines_say_what_they_are_about(places: Places) -> None:
    written = await asyncio.to_thread(setup, places)

    async def run(number: int) -> None:
        log.about(run_id=f"run-{number}", agent_id="main")
        await asyncio.sleep(0)
        logging.getLogger("x").info("number %d", number)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(run(number))
    logging.getLogger("x").info("of nobody")
    await asyncio.to_thread(written.close)
    found = await asyncio.to_thread(entries, places)
    assert {entry["message"]: entry.get("run_id") for entry in found} == {
        "number 0": "run-0", "number 1": "run-1", "number 2": "run-2", "of nobody": None,
    }  # fmt: skip


def test_file_and_console_have_levels_of_their_own(places: Places, capsys: pytest.CaptureFixture[str]) -> None:
    written = setup(places, stderr=True, sinks=Sinks("error", console_level="debug", style="json"))
    told: list[str] = []
    written.tellers.append(lambda entry: told.append(entry["message"]))
    logging.getLogger("x").debug("small")
    logging.getLogger("x").error("large")
    written.configure(Sinks("info", console_level="silent", style="json", patterns=("order-[0-9]+",)))
    logging.getLogger("x").info("order-17 came")
    written.close()
    assert [entry["message"] for entry in entries(places)] == ["large", "*** came"]
    assert [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()] == ["small", "large"]
    assert told == ["large", "*** came"]


def test_a_file_of_its_own_is_set_aside_when_it_is_full(places: Places, tmp_path: Path) -> None:
    own = tmp_path / "mine.log"
    written = setup(places, sinks=Sinks(file=own, bounds=Bounds(file_bytes=400)))
    for number in range(40):
        logging.getLogger("x").info("number %d", number)
        settled(own, number)
    written.close()
    found = sorted(path.name for path in tmp_path.glob("mine*"))
    assert found == ["mine.1.log", "mine.2.log", "mine.3.log", "mine.4.log", "mine.5.log", "mine.log"]
    assert all(path.stat().st_size <= 400 for path in tmp_path.glob("mine*"))
    assert json.loads(tail(places, file=own).lines[-1])["message"] == "number 39"
    assert not places.logs.exists()


def settled(file: Path, number: int) -> None:
    """Lines of one batch go together: wait until this one is there."""
    pause = threading.Event()
    for _ in range(1_000):
        if file.exists() and f'number {number}"' in file.read_text():
            return
        pause.wait(0.005)
    raise AssertionError(number)


def test_where_a_file_of_its_own_cannot_be_the_usual_one_is_written(places: Places, tmp_path: Path) -> None:
    written = setup(places, sinks=Sinks(file=tmp_path / "no" / "such" / "folder.log"))
    logging.getLogger("x").info("kept")
    written.close()
    assert [entry["message"] for entry in entries(places)] == ["kept"]
