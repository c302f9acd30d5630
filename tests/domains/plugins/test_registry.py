"""Plugins are found as data, loaded when wanted, and taken away whole."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import NotFound, UserError
from garra.domains.plugins import discover, load
from garra.domains.plugins.registry import Registry

TOOL = """
from garra.sdk.tool import Result, ToolInfo

class Hello:
    info = ToolInfo("hello", "Hello", "Says hello.", {"type": "object", "properties": {}})

    async def execute(self, call, update):
        return Result.of("hello")
"""
SCHEMA = '{"type": "object", "additionalProperties": false}'


def strict(schema: Mapping[str, Any], value: Any) -> Iterable[str]:
    """As much of JSON Schema as these tests need: no key but those listed."""
    return [f"unexpected property {key!r}" for key in value if key not in schema.get("properties", {})]


def extension(root: Path, name: str, code: str, manifest: str = "", schema: str = SCHEMA) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "plugin.py").write_text(code)
    if manifest:
        (folder / "manifest.toml").write_text(manifest)
    else:
        body = f'{{"id": "{name}", "configSchema": {schema}, "python": "plugin:register"}}'
        (folder / "openclaw.plugin.json").write_text(body)
    return folder


def registry(root: Path, settings: Mapping[str, Any], ports: Mapping[str, Any] | None = None) -> Registry:
    made = Registry(ports or {})
    made.scan([discover.extensions(root)], settings, strict)
    return made


def on(*names: str, **config: Any) -> dict[str, Any]:
    return {"entries": {name: {"enabled": True, **config} for name in names}}


@pytest.mark.req("EXT-02")
def test_broken_code_is_listed_and_its_settings_are_checked_without_running_it(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    extension(tmp_path / "ext", "bad", f"open({str(ran)!r}, 'w')\nraise RuntimeError('boom')\n")
    rows = registry(tmp_path / "ext", on("bad", config={"colour": "red"})).rows()
    assert rows[0].status == "plugins.entries.bad.config: unexpected property 'colour'"
    assert not ran.exists()


@pytest.mark.req("EXT-02")
def test_a_folder_without_a_manifest_is_no_plugin(tmp_path: Path) -> None:
    (tmp_path / "ext" / "plain").mkdir(parents=True)
    (tmp_path / "ext" / "plain" / "plugin.py").write_text("raise SystemExit")
    assert registry(tmp_path / "ext", {}).rows() == []


def test_a_backup_folder_is_not_loaded(tmp_path: Path) -> None:
    extension(tmp_path / "ext", "mine.bak", "raise SystemExit")
    assert registry(tmp_path / "ext", on("mine.bak")).rows() == []


def test_nothing_is_on_until_the_owner_says_so(tmp_path: Path) -> None:
    extension(tmp_path / "ext", "mine", "raise SystemExit")
    row = registry(tmp_path / "ext", {}).rows()[0]
    assert not row.enabled
    assert row.status == "off until plugins.entries.mine.enabled is true"


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"deny": ["mine"], **on("mine")}, "denied by plugins.deny"),
        ({"enabled": False, **on("mine")}, "plugins.enabled is false"),
        ({"allow": ["other"], **on("mine")}, "not in plugins.allow"),
        ({"entries": {"mine": {"enabled": False}}}, "plugins.entries.mine.enabled is false"),
    ],
)
def test_who_may_be_on(tmp_path: Path, settings: dict[str, Any], status: str) -> None:
    extension(tmp_path / "ext", "mine", "raise SystemExit")
    assert registry(tmp_path / "ext", settings).rows()[0].status == status


@pytest.mark.req("EXT-04")
def test_register_must_be_synchronous(tmp_path: Path) -> None:
    extension(tmp_path / "ext", "later", "async def register(api):\n    pass\n")
    row = registry(tmp_path / "ext", on("later")).rows()[0]
    assert "plugin register must be synchronous" in row.status
    assert not row.enabled


@pytest.mark.req("EXT-04")
def test_the_window_closes(tmp_path: Path) -> None:
    code = TOOL + "\nkept = []\ndef register(api):\n    kept.append(api)\n    api.tool(Hello())\n"
    extension(tmp_path / "ext", "keeps", code)
    made = registry(tmp_path / "ext", on("keeps"))
    assert [(tool.info.name, tool.info.source) for tool in made.tools()] == [("hello", "plugin")]
    module = sys.modules["garra_extension_keeps.plugin"]
    with pytest.raises(UserError, match="the register window is closed"):
        module.kept[0].tool(module.Hello())


def test_a_plugin_is_removed_whole(tmp_path: Path) -> None:
    extension(tmp_path / "ext", "gone", TOOL + "\ndef register(api):\n    api.tool(Hello())\n")
    made = registry(tmp_path / "ext", on("gone"))
    assert made.tools()
    made.remove("gone")
    assert made.tools() == []
    assert made.rows() == []


def test_a_port_not_asked_for_is_not_given(tmp_path: Path) -> None:
    extension(tmp_path / "ext", "greedy", "def register(api):\n    api.port('http')\n")
    row = registry(tmp_path / "ext", on("greedy"), {"http": object()}).rows()[0]
    assert "does not list under needs" in row.status


def test_a_plugin_that_raises_names_itself_and_harms_nobody(tmp_path: Path) -> None:
    extension(tmp_path / "ext", "bad", "def register(api):\n    raise RuntimeError('boom')\n")
    extension(tmp_path / "ext", "good", TOOL + "\ndef register(api):\n    api.tool(Hello())\n")
    made = registry(tmp_path / "ext", on("bad", "good"))
    assert {row.id: row.enabled for row in made.rows()} == {"bad": False, "good": True}
    assert [tool.info.name for tool in made.tools()] == ["hello"]


def test_two_with_one_id(tmp_path: Path) -> None:
    extension(tmp_path / "a", "same", TOOL + "\ndef register(api):\n    api.tool(Hello())\n")
    extension(tmp_path / "b", "same", "raise SystemExit")
    made = Registry({})
    made.scan([discover.extensions(tmp_path / "a"), discover.extensions(tmp_path / "b")], on("same"), strict)
    assert [row.status for row in made.rows()] == ["ready", "another plugin with this id was found first"]


def test_a_part_is_made_once_and_only_when_asked_for(tmp_path: Path) -> None:
    manifest = 'id = "fam"\nkind = "api"\n[[part]]\nname = "family"\nmodule = "plugin:Family"\n'
    code = "made = []\nclass Family:\n    family = 'family'\n    def __init__(self):\n        made.append(1)\n"
    extension(tmp_path / "ext", "fam", code, manifest)
    made = registry(tmp_path / "ext", on("fam"))
    assert "garra_extension_fam" not in sys.modules
    assert made.api("family") is made.api("family")
    assert sys.modules["garra_extension_fam.plugin"].made == [1]
    with pytest.raises(NotFound, match="no api is called 'other'; there is family"):
        made.api("other")


def test_a_need_the_host_lacks(tmp_path: Path) -> None:
    manifest = 'id = "wants"\nkind = "api"\nmodule = "plugin:Family"\nneeds = ["moon"]\n'
    extension(tmp_path / "ext", "wants", "class Family: pass\n", manifest)
    with pytest.raises(load.Broken, match="needs moon"):
        registry(tmp_path / "ext", on("wants")).api("wants")


def test_the_settings_of_a_channel_are_those_of_an_account(tmp_path: Path) -> None:
    """They stand under `channels`, so a field that an account must have is not lacking here."""
    manifest = 'id = "post"\nkind = "channel"\nmodule = "plugin:Post"\n[settings]\nrequired = ["host"]\n'
    extension(tmp_path / "ext", "post", "", manifest)
    made = Registry({})
    made.scan([discover.extensions(tmp_path / "ext")], on("post"), lambda *_: ["host: is required"])
    assert [plugin.id for plugin in made.of("channel")] == ["post"]


ALONE = 'id = "{name}"\nkind = "tool"\n[[tool]]\nname = "{tool}"\nmodule = "plugin:Hello"\n'


@pytest.mark.parametrize("code", ["import nosuchmodule\n", "class Hello(:\n", "Other = 1\n"])
def test_a_tool_that_does_not_load_is_not_called_ready(tmp_path: Path, code: str) -> None:
    name = f"broken{len(code)}"
    extension(tmp_path / "ext", name, code, ALONE.format(name=name, tool=name))
    made = registry(tmp_path / "ext", on(name))
    made.prove()
    (row,) = made.rows()
    assert not row.enabled
    assert row.status.startswith(f"plugin {name} does not load: ")


def test_a_tool_whose_name_is_taken_says_so(tmp_path: Path) -> None:
    for name in ("one", "two"):
        extension(tmp_path / "ext", name, TOOL, ALONE.format(name=name, tool="hello"))
    made = registry(tmp_path / "ext", on("one", "two"))
    made.prove()
    assert [row.status for row in made.rows()] == [
        "ready",
        "its tool hello is hidden by the tool of plugin one of that name: give it another name",
    ]


def test_a_tool_with_needs_is_proved_without_them(tmp_path: Path) -> None:
    manifest = 'needs = ["http"]\n' + ALONE.format(name="needy", tool="hello")
    code = TOOL + "    def __init__(self, http):\n        http.open()\n"
    extension(tmp_path / "ext", "needy", code, manifest)
    made = registry(tmp_path / "ext", on("needy"), {"http": None})
    made.prove()
    assert [row.status for row in made.rows()] == ["ready"]
