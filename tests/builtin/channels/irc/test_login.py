"""The way into a server, line by line."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from garra.builtin.channels.irc.line import read
from garra.builtin.channels.irc.login import HISTORY, Login
from garra.builtin.channels.irc.settings import settings
from garra.core.secret import Secret
from garra.sdk.channel import Account, LinkLost, LinkRefused


def login(**own: Any) -> Login:
    return Login(settings(Account("default", {"host": "irc.example", "nick": "garra-bot", **own})))


def said(to: Login, *lines: str) -> list[str]:
    """What it says to the last of `lines`."""
    told: list[bytes] = []
    for text in lines:
        line = read(text.encode())
        assert line is not None
        told = to.heard(line)
    return [raw.decode().rstrip() for raw in told]


def test_it_begins_with_its_abilities_then_the_password() -> None:
    hello = [raw.decode().rstrip() for raw in login(password=Secret("a word"), username="u", realname="R N").hello()]
    assert hello == ["CAP LS :302", "PASS :a word", "NICK :garra-bot", "USER u 0 * :R N"]


def test_abilities_over_several_lines() -> None:
    found = login()
    assert said(found, "CAP * LS * :message-tags sasl=PLAIN,EXTERNAL away-notify") == []
    assert said(found, "CAP * LS :server-time batch draft/chathistory") == [
        "CAP REQ :batch draft/chathistory message-tags server-time"
    ]
    assert said(found, "CAP x ACK :batch draft/chathistory message-tags server-time") == ["CAP :END"]
    assert found.caps == HISTORY
    assert said(found, "CAP x DEL :batch") == []
    assert "batch" not in found.caps
    assert said(login(), "CAP * LS :away-notify") == said(login(), "CAP * NAK :batch") == ["CAP :END"]


@pytest.mark.parametrize(
    ("ways", "used"), [("sasl", True), ("sasl=PLAIN", True), ("sasl=EXTERNAL,SCRAM-SHA-256", False)]
)
def test_sasl_only_where_plain_is_taken(ways: str, used: bool) -> None:
    found = login(nickserv={"password": "p"})
    assert said(found, f"CAP * LS :{ways}") == (["CAP REQ :sasl"] if used else ["CAP :END"])
    assert said(login(), f"CAP * LS :{ways}") == ["CAP :END"]


@pytest.mark.parametrize("size", [1, 288, 600])
def test_a_long_password_is_sent_in_pieces(size: int) -> None:
    found = login(nickserv={"password": "p" * size, "account": "a" * 10})
    assert said(found, "CAP * LS :sasl", "CAP * ACK :sasl") == ["AUTHENTICATE :PLAIN"]
    parts = [line.removeprefix("AUTHENTICATE :") for line in said(found, "AUTHENTICATE +")]
    assert all(len(part) == 400 for part in parts[:-1])
    assert len(parts[-1]) < 400
    whole = "".join(part for part in parts if part != "+")
    assert base64.b64decode(whole).decode() == f"\0{'a' * 10}\0{'p' * size}"
    assert said(found, ":s 903 x :ok") == ["CAP :END"]
    assert found.logged_in


@pytest.mark.parametrize(
    "line", [":s 464 * :Password incorrect", "ERROR :Access denied: Bad password?", ":s 465 * :no", ":s 904 * :no",
             ":s 905 * :no", ":s 902 * :no", ":s 432 * x :Erroneous nick"],
)  # fmt: skip
def test_what_no_second_try_would_mend(line: str) -> None:
    with pytest.raises(LinkRefused):
        said(login(), line)


def test_other_ends_are_passing() -> None:
    with pytest.raises(LinkLost, match="Closing Link"):
        said(login(), "ERROR :Closing Link: too fast")
    inside = login()
    said(inside, ":s 001 garra-bot :Welcome", ":s 422 garra-bot :no motd")
    assert inside.welcomed
    with pytest.raises(LinkLost):
        said(inside, "ERROR :password changed")
    assert said(inside, ":s 433 garra-bot x :in use") == said(inside, ":s 464 x :no") == []


def test_other_nicks_fit_nine_letters() -> None:
    found = login()
    assert said(found, ":s 433 * garra-bot :in use") == ["NICK :garra-bot_"]
    assert said(found, ":s 432 * garra-bot_ :too long") == ["NICK :garra-bo_"]
    assert said(found, ":s 433 * garra-bo_ :in use") == ["NICK :garra-b_1"]
    said(found, ":s 001 garra-b_1 :Welcome")
    assert found.me.nick == "garra-b_1"


def test_what_the_server_tells_of_itself_and_us() -> None:
    found = login()
    said(found, ":s 001 g :hi", ":s 005 g CASEMAPPING=ascii CHANTYPES=#! PREFIX=(ov)@+ BOT=B :are supported")
    assert (found.me.casemapping, found.me.signs, found.me.status, found.facts["BOT"]) == ("ascii", "#!", "@+", "B")
    said(found, ":G!u@host JOIN #x", ":g!u@host NICK h", ":other!u@h NICK z", ":s 900 h h!u@host acc :logged in")
    assert (found.me.source, found.me.nick, found.logged_in) == ("h!u@host", "h", True)
