from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pyjson5
import pytest

from garra.config.load import Snapshot, digest
from garra.config.write import Writer
from garra.core.errors import ConfigInvalid, Conflict, Forbidden, NotFound, UserError
from garra.core.merge import Change
from garra.core.redact import SENTINEL
from tests.config.place import Installation

HAND = """{
  // the port
  gateway: { mode: "local", port: 1234, future: { keep: "me" } },
  'odd': [1, 2], // and this
}
"""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_an_emptied_file_is_restored_not_built_upon(here: Installation) -> None:
    here.write("{ gateway: { port: 1 } }")
    here.writer.set("gateway.port", 2)
    here.write("")
    with pytest.raises(ConfigInvalid, match="config restore"):
        here.writer.set("logging.level", "debug")
    assert here.writer.restore().config.gateway.port == 2
    here.file.unlink()
    assert here.writer.set("logging.level", "debug").config.logging.level == "debug"


@pytest.mark.req("BOOT-14")
def test_a_change_keeps_comments_order_and_unknown_keys(here: Installation) -> None:
    here.write(HAND)
    found = here.writer.set("gateway.port", 5)
    assert (found.valid, found.config.gateway.port) == (True, 5)
    assert here.text == HAND.replace("1234", "5")
    here.writer.patch({"gateway": {"bind": "lan", "port": None}})
    assert here.text == HAND.replace("port: 1234, ", "").replace('"me" }', '"me" }, bind: "lan"')
    here.writer.unset("gateway.bind")
    assert "// the port" in here.text
    assert "// and this" in here.text


@pytest.mark.req("COF-22")
def test_the_first_write_makes_file_and_folder_for_the_owner_alone(here: Installation) -> None:
    here.writer.set("gateway.port", 5)
    assert here.text == '{\n  "gateway": {\n    "port": 5\n  }\n}\n'
    assert stat.S_IMODE(here.paths.state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in here.paths.state.iterdir()} == {0o600}
    assert names(here.paths.state) == ["garra.json", "garra.json.last-good", "garra.json.lock"]
    here.writer.set("gateway.port", 6)
    assert (here.paths.state / "garra.json.bak").read_text() == '{\n  "gateway": {\n    "port": 5\n  }\n}\n'


@pytest.mark.req("BOOT-14")
def test_a_stale_hash_is_refused(here: Installation) -> None:
    here.write(HAND)
    stale = digest("something else")
    changes: list[Callable[[], Snapshot]] = [
        lambda: here.writer.set("gateway.port", 5, base_hash=stale),
        lambda: here.writer.patch({"gateway": {"port": 5}}, stale),
        lambda: here.writer.replace("{}", stale),
        lambda: here.writer.unset("odd", base_hash=stale),
    ]
    for change in changes:
        with pytest.raises(Conflict, match="has changed"):
            change()
    assert here.text == HAND
    found = here.writer.set("gateway.port", 5, base_hash=digest(HAND))
    assert here.writer.set("gateway.port", 6, base_hash=found.hash).config.gateway.port == 6


def test_what_would_not_be_valid_is_not_written(here: Installation) -> None:
    here.write(HAND)
    with pytest.raises(ConfigInvalid, match=r"gateway\.port") as caught:
        here.writer.set("gateway.port", "soon")
    assert caught.value.details == {
        "issues": [{"path": "gateway.port", "message": "Invalid input: expected a valid integer, received text"}]
    }
    with pytest.raises(ConfigInvalid):
        here.writer.replace("{ nonsense")
    with pytest.raises(UserError, match="holds a single value"):
        here.writer.set("gateway.port.x", 1)
    assert here.text == HAND
    assert names(here.paths.state) == ["garra.json", "garra.json.lock"]


@pytest.mark.req("BOOT-15")
def test_a_broken_file_is_not_written_to_and_can_be_restored(here: Installation) -> None:
    here.writer.set("gateway.port", 5)
    here.write('{ "gateway": { "port": ')
    with pytest.raises(ConfigInvalid, match="restore"):
        here.writer.set("gateway.port", 6)
    assert here.text == '{ "gateway": { "port": '
    found = here.writer.restore()
    assert (found.valid, found.config.gateway.port) == (True, 5)
    assert (here.paths.state / "garra.json.broken").read_text() == '{ "gateway": { "port": '


def test_a_step_on_the_way_need_not_be_valid_and_what_stood_there_is_kept(here: Installation) -> None:
    here.write('{ gateway: { port: "x" }, agents: 1 }')
    found = here.writer.mend('{ gateway: { port: "x" } }', here.load().hash)
    assert not found.valid
    assert here.text == '{ gateway: { port: "x" } }'
    assert here.paths.set_aside[0].read_text() == '{ gateway: { port: "x" }, agents: 1 }'
    with pytest.raises(Conflict, match="look at it again"):
        here.writer.mend("{}", "another")
    assert here.writer.mend("{}", found.hash, aside=False).valid
    assert not here.paths.set_aside[1].exists()


def test_as_many_broken_texts_are_kept_as_there_are_places_each_once(here: Installation) -> None:
    for number in [*range(7), 6, 3]:
        here.write(f"broken {number}")
        here.writer.keep_aside()
    assert [place.read_text() for place in here.paths.set_aside] == [f"broken {number}" for number in (6, 5, 4, 3, 2)]
    assert set(here.paths.set_aside) < set(here.paths.private)


def test_a_setting_that_is_not_valid_can_be_mended_by_setting_it(here: Installation) -> None:
    here.write('{ gateway: { port: "x" } }')
    assert here.writer.set("gateway.port", 5).valid
    assert not (here.paths.state / "garra.json.bak").exists()


def test_restoring_nothing_says_so(here: Installation) -> None:
    with pytest.raises(NotFound, match="no last good"):
        here.writer.restore()
    with pytest.raises(NotFound, match="not set"):
        here.writer.unset("gateway.port")


def test_a_suspicious_loss_is_refused_unless_meant(here: Installation) -> None:
    text = json.dumps({"gateway": {"mode": "local"}, "ui": {"text": "x" * 1000}})
    here.write(text)
    with pytest.raises(Conflict, match="would shrink"):
        here.writer.replace('{"gateway": {"mode": "local"}}')
    with pytest.raises(Conflict, match=r"gateway\.mode"):
        here.writer.replace(json.dumps({"ui": {"text": "x" * 1000}}))
    with pytest.raises(Conflict, match="would shrink"):
        here.writer.patch({"ui": None})
    assert here.text == text
    here.writer.replace('{"gateway": {"mode": "local"}}', shrink=True)
    here.writer.unset("gateway")


def test_several_changes_are_made_together_or_not_at_all(here: Installation) -> None:
    here.write(HAND)
    with pytest.raises(ConfigInvalid):
        here.writer.apply([Change(("gateway", "bind"), "lan"), Change(("gateway", "port"), "x")])
    assert here.text == HAND
    found = here.writer.apply([Change(("gateway", "bind"), "lan"), Change(("odd",), None, gone=True)])
    assert (found.config.gateway.bind, "odd" in found.parsed) == ("lan", False)


def test_a_hidden_secret_that_comes_back_is_the_stored_one(here: Installation) -> None:
    here.write(
        '{ gateway: { auth: { token: "${TOKEN}" } }, models: { providers: { a: { baseUrl: "x", apiKey: "k1",'
        " models: [] } } } }"
    )
    here.writer.patch({"models": {"providers": {"a": {"apiKey": SENTINEL, "baseUrl": "http://x"}}}})
    here.writer.set(
        "models.providers.a", {"apiKey": SENTINEL, "baseUrl": "http://x", "models": [{"id": "m", "name": "M"}]}
    )
    here.writer.replace(here.text.replace("k1", SENTINEL).replace("${TOKEN}", SENTINEL))
    parsed = pyjson5.decode(here.text)
    assert parsed["models"]["providers"]["a"]["apiKey"] == "k1"
    assert parsed["gateway"]["auth"]["token"] == "${TOKEN}"
    with pytest.raises(ConfigInvalid, match="no secret is stored"):
        here.writer.set("hooks.token", SENTINEL)
    with pytest.raises(ConfigInvalid, match="no secret is stored"):
        here.writer.replace(f'{{ hooks: {{ token: "{SENTINEL}" }} }}')


def test_what_an_included_file_says_is_overridden_beside_it(here: Installation) -> None:
    here.write("{ port: 5 }", "gateway.json5")
    here.write('{ gateway: { $include: "gateway.json5", bind: "lan" } }')
    assert here.writer.set("gateway.port", 6).config.gateway.port == 6
    with pytest.raises(UserError, match="included file"):
        here.writer.unset("gateway.port")
    assert (here.paths.state / "gateway.json5").read_text() == "{ port: 5 }"


def test_a_configuration_managed_from_outside_is_left_alone(here: Installation) -> None:
    here.write(HAND)
    here.env["GARRA_CONFIG_READONLY"] = "1"
    changes: list[Callable[[], Snapshot]] = [lambda: here.writer.set("gateway.port", 5), here.writer.restore]
    for change in changes:
        with pytest.raises(Forbidden):
            change()
    assert here.text == HAND


def test_the_writer_announces_what_it_wrote(here: Installation) -> None:
    seen: list[Snapshot] = []
    writer = Writer(here.paths, here.environment, seen.append)
    writer.set("gateway.port", 5)
    writer.set("gateway.port", 5)
    assert [found.config.gateway.port for found in seen] == [5]
