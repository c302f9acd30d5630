"""What `garra messages` says of itself."""

from __future__ import annotations

from pathlib import Path

from garra.faces.cli.messages import MEANINGS, beginnings, cut, listed
from tests.faces.cli.test_channels import garra


def test_the_list_explains_itself_and_every_state(tmp_path: Path) -> None:
    said = garra(tmp_path, "messages", "list", "--help").stdout
    assert "The messages of every channel, newest first" in said
    assert [state for (_, state), words in MEANINGS.items() if f"  {state:<8} {words}" not in said] == []


def test_the_others_have_a_sentence(tmp_path: Path) -> None:
    assert "Try a dead or unsure message again." in garra(tmp_path, "messages", "retry", "--help").stdout


def test_ids_are_shown_as_far_as_they_are_needed() -> None:
    alike, other = "out:send:df2d714f-cca3:", "out:send:11111111-cca3:0"
    assert beginnings([f"{alike}0", f"{alike}1", other]) == [f"{alike}0", f"{alike}1", other[:18]]
    assert beginnings(["short", "short"]) == ["short", "short"]


def test_a_table_keeps_to_the_width_there_is() -> None:
    row = {
        "id": "x" * 40,
        "at": 0,
        "direction": "in",
        "state": "done",
        "channel": "c",
        "chat": "9" * 60,
        "text": "w " * 90,
    }
    for width in (100, 140):
        lines = listed([row], width).splitlines()
        assert max(map(len, lines)) == width
        assert lines[1].endswith("…")
    assert cut("a\n b", 9) == "a b"


def test_the_command_alone_shows_what_it_can_do(tmp_path: Path) -> None:
    done = garra(tmp_path, "message")
    assert (done.returncode, done.stderr) == (0, "")
    assert "send one message" in done.stdout
    said = garra(tmp_path, "message", "send", "--help").stdout
    assert "-m TEXT, --message TEXT" in said
    assert "Send one message to a chat" in said


def test_every_step_of_pairing_and_channels_has_a_sentence(tmp_path: Path) -> None:
    for command, steps in (
        ("pairing", {"list": "Who waits", "approve": "Let in whoever", "dismiss": "Forget", "revoke": "Let somebody"}),
        (
            "channels",
            {"list": "The conf", "status": "How each", "remove": "Switch an", "start": "Start an", "stop": "Stop"},
        ),
    ):
        for step, words in steps.items():
            assert words in garra(tmp_path, command, step, "--help").stdout
    assert "[OPTIONS] CHANNEL CODE\n" in garra(tmp_path, "pairing", "approve", "--help").stdout
