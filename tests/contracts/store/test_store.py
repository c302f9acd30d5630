"""What every store must do, run over each kind of store there is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from garra.io.store.db import Connection, Database
from garra.io.store.shelf import Seen, Shelf

Open = Callable[[Path], Database]
STORES: dict[str, Open] = {"sqlite": lambda folder: Database(folder / "state.db")}


@pytest.fixture(params=sorted(STORES))
def opened(request: pytest.FixtureRequest) -> Open:
    return STORES[request.param]


@pytest.fixture
async def db(opened: Open, tmp_path: Path) -> AsyncIterator[Database]:
    store = opened(tmp_path)
    yield store
    await store.close()


async def test_small_values_are_kept_by_name(db: Database) -> None:
    shelf, other = Shelf(db, "devices"), Shelf(db, "other")
    await shelf.set("a", {"x": [1, None]})
    await shelf.set("a", {"x": 2}, durable=True)
    await shelf.update({"b": "text", "c": 3})
    assert await shelf.get("a") == {"x": 2}
    assert await shelf.items() == {"a": {"x": 2}, "b": "text", "c": 3}
    assert await other.get("a") is None
    assert await shelf.remove("a")
    assert not await shelf.remove("a")
    with pytest.raises(TypeError):
        await shelf.set("d", object())


async def test_a_name_takes_effect_once_until_it_expires(db: Database) -> None:
    seen = Seen(db, "inbox")
    assert await seen.first("m1", now_ms=0, keep_ms=100)
    assert not await seen.first("m1", now_ms=99, keep_ms=100)
    assert await Seen(db, "other").first("m1", now_ms=99, keep_ms=100)
    assert await seen.first("m1", now_ms=100, keep_ms=100)


async def test_what_is_committed_is_there_after_a_restart(opened: Open, tmp_path: Path) -> None:
    first = opened(tmp_path)
    await Shelf(first, "s").set("a", 1)
    await first.close()
    second = opened(tmp_path)
    assert await Shelf(second, "s").get("a") == 1
    await second.close()


async def test_writes_take_effect_in_the_order_they_were_asked_for(db: Database) -> None:
    shelf = Shelf(db, "s")
    await asyncio.gather(*(shelf.set("a", number) for number in range(200)))
    assert await shelf.get("a") == 199


async def test_of_many_that_come_at_once_one_is_first(db: Database) -> None:
    seen = Seen(db, "s")
    outcomes = await asyncio.gather(*(seen.first("m", now_ms=0, keep_ms=9) for _ in range(50)))
    assert sum(outcomes) == 1


async def test_a_write_whose_caller_went_away_is_whole(db: Database) -> None:
    def two(connection: Connection) -> None:
        connection.execute("INSERT INTO shelf VALUES ('s', 'a', '1')")
        connection.execute("INSERT INTO shelf VALUES ('s', 'b', '1')")

    task = asyncio.gather(db.write(two))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await Shelf(db, "s").items()) in (0, 2)
