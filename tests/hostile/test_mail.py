"""Mails that are made to be taken for the owner's, to be answered for ever, or to do more than they show."""

from __future__ import annotations

import asyncio
import json
from email.utils import getaddresses
from pathlib import Path

import pytest

from tests.e2e.outside import logged
from tests.e2e.test_email import ANN, BOT, Post, post
from tests.hostile.cases import Hostile, of

pytestmark = [pytest.mark.e2e, pytest.mark.needs("dovecot", "postfix"), pytest.mark.timeout(180)]
WORD = "Authentication-Results: mx.test; dmarc=pass header.from=example.org"


def mail(case: Hostile, number: int) -> bytes:
    """As it is delivered. `case-N-` stands in its body, so that it is known again."""
    heads = list(case.get("heads", [f"From: {ANN}"]))
    names = {head.partition(":")[0].lower() for head in heads}
    if case.get("proven", True):
        heads.insert(0, WORD)
    if "message-id" not in names:
        heads.append(f"Message-ID: <case-{number}@example.org>")
    body, name = f"case-{number}-\r\n{case.get('body', 'hello')}", case.get("name", "")
    if attached := case.get("attached", "x" * case.get("attached_times", 0)):
        name = f'filename="{attached}"'
    if name:
        heads += ["MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=b"]
        part = f"Content-Type: application/octet-stream\r\nContent-Disposition: attachment; {name}\r\n\r\nPATH=/evil"
        body = f"--b\r\nContent-Type: text/plain\r\n\r\n{body}\r\n--b\r\n{part}\r\n--b--"
    elif "content-type" not in names:
        heads += ["MIME-Version: 1.0", f"Content-Type: {case.get('type', 'text/plain')}; charset=utf-8"]
    return "\r\n".join([*heads, "", body, ""]).encode()


def standing(net: Post) -> set[str]:
    """The files that an agent goes by, and every name that a mail could have chosen."""
    state = net.program.state
    own = {str(file.relative_to(state)) for file in (state / "workspace").rglob("*")}
    chosen = {file.name for file in net.program.root.rglob("*") if file.name in {".env", "garra", "MEMORY.md"}}
    return own | chosen


async def test_no_mail_is_taken_for_another_nor_answered_for_ever(tmp_path: Path) -> None:
    async with post(tmp_path, dmPolicy="allowlist", allowFrom=[ANN]) as net:
        await net.write("first words")
        await net.got(1)  # the control
        before, rules = await asyncio.to_thread(standing, net), net.program.state / "workspace" / "AGENTS.md"
        said = await asyncio.to_thread(rules.read_bytes)
        cases = of("mail")
        for number, case in enumerate(cases):
            await net.dovecot.deliver(BOT, mail(case, number), "" if "<>" in str(case.get("heads")) else "x@y.example")
        await net.write("last words")
        await net.got(2 + sum("seen" in case.more for case in cases))
        heard = [json.dumps(seen.body["messages"][-1], ensure_ascii=False) for seen in net.model.requests]
        found = {case.id: why for number, case in enumerate(cases) if (why := fault(case, number, heard))}
        assert not found, json.dumps(found, indent=1, ensure_ascii=False)
        for person in ("eve@evil.example", "eve", BOT):
            mails = await asyncio.to_thread(net.dovecot.mails, person)
            assert all("garra." not in str(each["Message-ID"]) for each in mails), person
        for each in await asyncio.to_thread(net.dovecot.mails, ANN):
            to = getaddresses(each.get_all("to", []) + each.get_all("cc", []) + each.get_all("bcc", []))
            assert [address for _, address in to] == [ANN]
            assert each["Auto-Submitted"] in ("auto-replied", "auto-generated")
        assert await asyncio.to_thread(standing, net) - before <= {"MEMORY.md"}
        assert await asyncio.to_thread(rules.read_bytes) == said
        assert "Traceback" not in logged(net.program)


def fault(case: Hostile, number: int, heard: list[str]) -> str:
    """What is wrong with what became of it; empty where nothing is."""
    mine = [text for text in heard if f"case-{number}-" in text]
    seen, unseen = case.get("seen"), case.get("unseen")
    if seen is None:
        return f"it was heard: {mine}" if mine else ""
    if len(mine) != 1 or seen not in mine[0]:
        return f"it was heard {len(mine)} times: {mine}"
    return f"more was heard: {mine}" if unseen and unseen in mine[0] else ""
