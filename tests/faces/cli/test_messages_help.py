"""What `garra messages` says of itself."""

from __future__ import annotations

from pathlib import Path

from garra.faces.cli.messages import MEANINGS
from tests.faces.cli.test_channels import garra


def test_the_list_explains_itself_and_every_state(tmp_path: Path) -> None:
    said = garra(tmp_path, "messages", "list", "--help").stdout
    assert "The messages of every channel, newest first" in said
    assert [state for (_, state), words in MEANINGS.items() if f"  {state:<8} {words}" not in said] == []


def test_the_others_have_a_sentence(tmp_path: Path) -> None:
    assert "Try a dead or unsure message again." in garra(tmp_path, "messages", "retry", "--help").stdout
