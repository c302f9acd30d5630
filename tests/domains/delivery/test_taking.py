"""An event that cannot be stored for a reason of its own is passed over; a fault that may pass is not its own."""

from __future__ import annotations

import pytest

from garra.core.errors import Unavailable
from garra.domains.delivery.storable import UNSTORABLE
from garra.domains.delivery.taking import TRIES, Taking
from garra.sdk.channel import Ignored, Inbound
from tests.domains.delivery.parts import inbound


class Store:
    """Takes all but the event `bad`, for which it raises `fault`."""

    def __init__(self, fault: Exception) -> None:
        self.fault, self.kept = fault, list[Inbound | Ignored]()

    async def __call__(self, event: Inbound | Ignored) -> None:
        if isinstance(event, Inbound) and event.id == "bad":
            raise self.fault
        self.kept.append(event)


async def test_an_event_that_fails_again_and_again_is_passed_over() -> None:
    store, notes = Store(ZeroDivisionError("odd")), list[str]()
    taking = Taking(store, notes.append)
    for _ in range(TRIES - 1):
        with pytest.raises(ZeroDivisionError):
            await taking(inbound("bad"))
    await taking(inbound("good"))
    await taking(inbound("bad"))
    assert store.kept == [inbound("good"), Ignored("bad", None, UNSTORABLE)]
    assert notes == ["an event could not be stored and was passed over: ZeroDivisionError"]


@pytest.mark.parametrize("fault", [Unavailable("the disk is full"), OSError("gone")])
async def test_a_fault_of_the_disk_is_waited_out_for_ever(fault: Exception) -> None:
    store = Store(fault)
    taking = Taking(store, list[str]().append)
    for _ in range(3 * TRIES):
        with pytest.raises(type(fault)):
            await taking(inbound("bad"))
    assert store.kept == []


async def test_what_failed_is_remembered_for_some_only() -> None:
    taking = Taking(Store(ValueError("odd")), list[str]().append)
    for _ in range(TRIES - 1):
        with pytest.raises(ValueError, match="odd"):
            await taking(inbound("bad"))
        for number in range(200):
            with pytest.raises(ValueError, match="odd"):
                await taking(inbound("bad", chat=str(number)))
