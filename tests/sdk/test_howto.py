"""What the pages for newcomers show is true: their examples run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from garra.config import include
from garra.config.sections import Config
from garra.core.errors import BadArguments, ToolFailed, UserError
from garra.domains.plugins import load
from garra.domains.plugins.discover import Plugin
from garra.sdk.manifest import parse
from garra.testing.calls import call_tool, load_tool

PAGES = Path(__file__).parents[2] / "docs" / "howto"


def blocks(page: str, language: str) -> list[str]:
    """The examples of a page in one language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_tool_of_the_page_runs_as_it_is_printed(tmp_path: Path) -> None:
    code, test = blocks("add-a-tool.md", "python")
    (tmp_path / "tool.py").write_text(code)
    tool = load_tool(tmp_path, "tool:Weather")()
    result = asyncio.run(call_tool(tool, {"place": "Oslo", "days": 2}, tmp_path))
    assert "Oslo for 2 day(s)" in str(result.content[0])
    for wrong in ({"place": "Oslo", "days": 8}, {"place": "Oslo", "days": 0}, {"place": ""}):
        with pytest.raises(BadArguments):
            asyncio.run(call_tool(tool, wrong, tmp_path))
    with pytest.raises(ToolFailed, match="on land"):
        asyncio.run(call_tool(tool, {"place": "Atlantis"}, tmp_path))
    compile(test, "the page", "exec")


def test_the_command_of_the_page_runs_as_it_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,), (manifest,) = blocks("add-a-command.md", "python"), blocks("add-a-command.md", "toml")
    (tmp_path / "visits.py").write_text(code)
    plugin = Plugin(parse("manifest.toml", manifest, "the page"), tmp_path, "global")
    (command,) = plugin.manifest.commands

    class Here:
        config: Mapping[str, Any] = {"step": 2}
        state = tmp_path

        def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
            raise AssertionError

    assert [load.command(plugin, command, names, Here()) for names in (["Ada"], ["Ada"], [])] == [0, 0, 0]
    assert capsys.readouterr().out.splitlines()[-1] == "Ada: 4"
    with pytest.raises(UserError, match="one name"):
        load.command(plugin, command, ["a", "b"], Here())


def test_the_provider_of_the_page_is_a_configuration() -> None:
    written, *clouds = blocks("add-a-provider.md", "json5")
    for cloud in clouds:
        [provider] = Config.model_validate(include.decode(cloud)).models.providers.values()
        assert provider.api is not None
        assert provider.models[0].id
    acme = Config.model_validate(include.decode(written)).models.providers["acme"]
    page = (PAGES / "add-a-provider.md").read_text()
    (typed,) = re.findall(r"config set models\.providers\.acme '(.*?)'", page, re.DOTALL)
    config = Config.model_validate({"models": {"providers": {"acme": include.decode(typed)}}})
    assert config.models.providers["acme"] == acme


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("add-a-provider.md", ("~/.garra/garra.json", "make new KIND=provider", "export ACME_API_KEY")),
        ("add-a-tool.md", ("gateway call tools.catalog", "restart the gateway", "garra.testing.calls")),
    ],
)
def test_the_page_names_what_a_newcomer_needs(page: str, words: tuple[str, ...]) -> None:
    assert [word for word in words if word not in (PAGES / page).read_text()] == []
