"""What of a chat's messages counts as text from outside, and that it is stored with the message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from garra.core import taint
from garra.core.messages import User
from garra.core.taint import Mark
from garra.sdk.channel import Address, Media, Sender
from tests.turns.house import House, config, house, message

OWNED = config({"commands": {"ownerAllowFrom": ["test:1"]}}, groupPolicy="open")
OWNER = Sender("1", "Ann")


async def marks(made: House, at: int = -1) -> tuple[Mark, ...]:
    """The marks of the newest turn; the same are stored with its words."""
    await made.idle()
    turn = made.turns[at]
    transcript = await made.sessions.transcript(turn.session_key)
    stored = [each for each in transcript.messages() if isinstance(each, User)]
    assert taint.of(stored[at].meta) == turn.marks
    return turn.marks


async def said(made: House, *args: str, **more: Any) -> tuple[Mark, ...]:
    await made.channel.say(*args, **more)
    return await marks(made)


async def test_an_owners_words_have_no_marks(tmp_path: Path) -> None:
    async with house(tmp_path, settings=OWNED) as made:
        assert await said(made, "hello") == ()
        assert await said(made, "look", media=(Media("file", "r", "invoice.pdf"),)) == ()


async def test_whoever_is_let_in_and_no_owner_is_outside(tmp_path: Path) -> None:
    async with house(tmp_path, settings=OWNED) as made:
        assert await said(made, "hello", "2") == (Mark("person", "Bob (2) on test"),)
        found = await said(made, "look", "2", media=(Media("file", "r", "run this.pdf"), Media("image", "s")))
        assert found[1:] == (Mark("file", "run this.pdf"), Mark("file", "(image)"))


async def test_where_no_owner_is_named_the_only_one_who_may_write_is_it(tmp_path: Path) -> None:
    async with house(tmp_path / "one", settings=config(allowFrom=["1"])) as made:
        assert await said(made, "hello") == ()
    async with house(tmp_path / "many") as made:
        assert await said(made, "hello") == (Mark("person", "Ann (1) on test"),)


async def test_a_group_is_outside_but_for_its_owner(tmp_path: Path) -> None:
    async with house(tmp_path, settings=OWNED) as made:
        assert await said(made, "hello", "1", "g", mentioned=True) == ()
        assert await said(made, "hello", "2", "g", mentioned=True) == (Mark("group", "Bob (2) on test"),)
        await made.channel.say("listen", "3", "g")
        await made.channel.say("mine", "1", "g")
        assert await said(made, "so?", "1", "g", mentioned=True) == (Mark("group", "Eve (3) on test"),)
        answered = await said(made, "this", "1", "g", mentioned=True, reply_text="run this")
        assert answered == (Mark("group", "somebody on test"),)


async def test_a_bot_is_outside_whatever_its_id(tmp_path: Path) -> None:
    async with house(tmp_path, settings=config({"commands": {"ownerAllowFrom": ["test:1"]}}, allowBots=True)) as made:
        found = await said(made, "hello", sender=Sender("1", "Ann", is_bot=True))
        assert [mark.source for mark in found] == ["person"]


async def test_mail_is_outside_whoever_sent_it_and_a_strangers_stands_in_its_part(tmp_path: Path) -> None:
    more = {"channels": {"email": {"dmPolicy": "open", "allowFrom": ["*"]}}}
    owned = config({**more, "commands": {"ownerAllowFrom": ["email:ann@a.example"]}})
    async with house(tmp_path, settings=owned) as made:
        for sender in ("ann@a.example", "eve@e.example"):
            address = Address("email", "default", sender, "direct")
            await made.channel.hear(message("forward all", sender, address=address, sender=Sender(sender)))
        await made.idle()
        own, strange = sorted(made.turns, key=lambda turn: turn.session_key)[:2]
        assert own.marks == (Mark("mail", "Somebody (ann@a.example)"),)
        assert own.text == "forward all"
        assert strange.marks == (Mark("mail", "Somebody (eve@e.example)"),)
        assert strange.text.startswith("<<<EXTERNAL_UNTRUSTED_CONTENT id=")
        assert "Source: mail Somebody (eve@e.example)\n---\nforward all\n" in strange.text


async def test_the_owners_files_are_outside_where_he_says_so(tmp_path: Path) -> None:
    strict = config({"commands": {"ownerAllowFrom": ["test:1"]}, "tools": {"taint": {"files": "all"}}})
    async with house(tmp_path, settings=strict) as made:
        found = await said(made, "look", media=(Media("file", "r", "invoice.pdf"),))
        assert found == (Mark("file", "invoice.pdf"),)


async def test_messages_left_out_for_lack_of_room_leave_their_marks(tmp_path: Path) -> None:
    queue = {"messages": {"inbound": {"debounceMs": 0}, "queue": {"mode": "followup", "debounceMs": 0, "cap": 1}}}
    async with house(tmp_path, settings=config({**queue, "commands": {"ownerAllowFrom": ["test:1"]}})) as made:
        for number in range(6):
            await made.channel.say(f"word {number}", "2")
        await made.idle()
        transcript = await made.sessions.transcript(made.turns[0].session_key)
        for each in transcript.messages():
            if isinstance(each, User):
                assert taint.of(each.meta) == (Mark("person", "Bob (2) on test"),)
