"""What is wrong with a configuration, as the repair looks at it."""

from __future__ import annotations

from garra.config import troubles
from garra.core.repair import Trouble
from tests.config.place import Installation


def test_a_missing_key_comes_with_those_beside_it(here: Installation) -> None:
    here.write("{models: {providers: {mine: {baseURL: 'http://x', models: []}}}}")
    (fault,) = troubles.faults(here.load())
    assert (fault.at[-1], fault.strays) == ("baseUrl", ("baseURL", "models"))


def test_a_wrong_value_comes_with_those_that_would_do(here: Installation) -> None:
    here.write("{\n logging: {level: 'loud'}}")
    (fault,) = troubles.faults(here.load())
    assert fault.line == 2
    assert "debug" in fault.allowed
    assert fault.strays == ()


def test_a_text_that_cannot_be_read_has_no_place(here: Installation) -> None:
    here.write("{")
    (fault,) = troubles.faults(here.load())
    assert (fault.at, fault.line) == ((), 1)


def test_a_slip_is_an_unknown_key_like_a_known_one(here: Installation) -> None:
    here.write("{gateway: {prot: 1}, nothingLikeIt: 2}")
    found = here.load()
    (slip,) = troubles.slips(found)
    assert isinstance(slip, Trouble)
    assert (slip.at, "port" in slip.names) == (("gateway", "prot"), True)
    assert troubles.faults(found) == ()
    assert len(troubles.marks(found)) == 1
