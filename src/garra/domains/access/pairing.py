"""Strangers who ask to be let in, and those who were: the one authority for pairing codes. In memory to read, in
`state.db` to last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from hmac import compare_digest
from typing import Any, Final

import msgspec

from garra.core import access
from garra.core.errors import Conflict, NotFound, UserError
from garra.core.value import frozen
from garra.io.store.shelf import Shelf
from garra.sdk.ports import Clock

LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""What a code is made of: nothing that is read for something else."""
LENGTH: Final = 8
VALID_MS: Final = 3_600_000
WAITING: Final = 3
"""So many wait at one account; whoever comes then is not heard until one is answered or expires."""
TRIES: Final = 5
"""So many wrong codes in chats within an hour, and the channel takes none there until the hour is over."""

Place = tuple[str, str]
"""Channel and account."""


@frozen
class Request:
    """A stranger who waits. Times in milliseconds since 1970; `chat` is where the answer goes."""

    channel: str
    account: str
    sender: str
    code: str
    created_at: int
    seen_at: int
    name: str = ""
    handle: str = ""
    chat: str = ""

    @property
    def id(self) -> str:
        """How programs name it; it does not tell the code."""
        return f"{self.channel}:{self.account}:{self.sender}"

    @property
    def expires_at(self) -> int:
        return self.created_at + VALID_MS


@frozen
class Person:
    """Somebody who was let in by a code."""

    channel: str
    account: str
    sender: str
    approved_at: int
    name: str = ""
    handle: str = ""
    chat: str = ""


@frozen
class Tries:
    """Wrong codes since `since`."""

    count: int
    since: int


@frozen
class Happened:
    """`requested`, `approved`, `dismissed` or `revoked`."""

    what: str
    channel: str
    account: str
    sender: str


Listener = Callable[[Happened], None]


class Pairing:
    """`load()` once before use; every change is stored before it takes effect. `pick` gives a random number below its
    argument, from a source that nobody can guess.
    """

    def __init__(self, shelves: Callable[[str], Shelf], clock: Clock, pick: Callable[[int], int]) -> None:
        self._waiting = shelves("pairing-requests")
        self._allowed = shelves("pairing-people")
        self._wrong = shelves("pairing-tries")
        self._clock = clock
        self._pick = pick
        self._requests: dict[str, Request] = {}
        self._people: dict[str, Person] = {}
        self._tries: dict[str, Tries] = {}
        self._ids: dict[Place, access.People] = {}
        self._listeners: list[Listener] = []
        self._turn = asyncio.Lock()

    async def load(self) -> None:
        """Read what is stored."""
        self._requests = {key: msgspec.convert(row, Request) for key, row in (await self._waiting.items()).items()}
        self._people = {key: msgspec.convert(row, Person) for key, row in (await self._allowed.items()).items()}
        self._tries = {key: msgspec.convert(row, Tries) for key, row in (await self._wrong.items()).items()}
        self._ids = {}

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Be told of every change. The call ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def allowed(self, channel: str, account: str) -> access.People:
        """The ids that were let in at one account; never a star."""
        found = self._ids.get((channel, account))
        if found is None:
            ids = (each.sender for each in self._people.values() if (each.channel, each.account) == (channel, account))
            found = self._ids[channel, account] = access.People(frozenset(ids))
        return found

    def people(self, channel: str = "", account: str = "") -> list[Person]:
        """Those who were let in, newest first; empty names mean all."""
        found = (each for each in self._people.values() if _at(each, channel, account))
        return sorted(found, key=lambda person: person.approved_at, reverse=True)

    def waiting(self, channel: str = "", account: str = "") -> list[Request]:
        """Requests whose code is still good, oldest first."""
        now = self._clock.now_ms()
        found = (each for each in self._requests.values() if _at(each, channel, account) and each.expires_at > now)
        return sorted(found, key=lambda request: request.created_at)

    async def knock(self, request: Mapping[str, str]) -> Request | None:
        """A stranger wrote. Gives the request with its code, the same one while it waits; None when too many others do.

        `request` names channel, account, sender, name, handle, chat.
        """
        async with self._turn:
            now = self._clock.now_ms()
            await self._expire(now)
            fresh = Request(code=self._code(), created_at=now, seen_at=now, **_clean(request))
            if (known := self._requests.get(fresh.id)) is not None:
                self._requests[fresh.id] = replace(known, seen_at=now)
                return self._requests[fresh.id]
            if len(self.waiting(fresh.channel, fresh.account)) >= WAITING:
                return None
            await self._waiting.set(fresh.id, msgspec.to_builtins(fresh), durable=True)
            self._requests[fresh.id] = fresh
        self._tell("requested", fresh)
        return fresh

    async def approve(self, channel: str, code: str, account: str = "", *, guessing: bool = True) -> Person:
        """Let in whoever has this code. Raises NotFound for a wrong or expired one, Conflict after too many wrong.

        `guessing`: it comes from somebody who is not shown the codes that wait, so that wrong ones count. Who may read
        them in `waiting` has nothing to guess; their slips lock nobody out, themselves included.
        """
        async with self._turn:
            now = self._clock.now_ms()
            if guessing:
                await self._guarded(channel, now)
            given = code.strip().upper()
            for request in self.waiting(channel, account):
                if compare_digest(request.code.encode(), given.encode()):
                    return await self._admit(request, now)
            if guessing:
                await self._missed(channel, now)
        raise NotFound(
            f"no request with this code waits at {channel}; it may have expired (a code is good for an hour). "
            f"See: garra pairing list {channel}"
        )

    async def approve_request(self, request_id: str) -> Person:
        """Let in a request named by its id, as the owner sees it in a list. Raises NotFound."""
        async with self._turn:
            return await self._admit(self._named(request_id), self._clock.now_ms())

    async def admit(self, person: Person) -> None:
        """Let in somebody whom another program had let in. Twice is once."""
        async with self._turn:
            await self._allowed.set(_key(person), msgspec.to_builtins(person), durable=True)
            self._people[_key(person)] = person
            self._ids = {}
        self._tell("approved", person)

    async def dismiss(self, request_id: str) -> Request:
        """Forget a request; its sender may ask again. Raises NotFound."""
        async with self._turn:
            request = self._named(request_id)
            await self._waiting.remove(request.id, durable=True)
            del self._requests[request.id]
        self._tell("dismissed", request)
        return request

    async def revoke(self, channel: str, sender: str, account: str = "") -> Person:
        """Let somebody in no more. Raises NotFound."""
        async with self._turn:
            found = [person for person in self.people(channel, account) if person.sender == sender]
            if not found:
                raise NotFound(f"nobody with the id {sender[:80]} was let in at {channel} by a code")
            for person in found:
                await self._allowed.remove(_key(person), durable=True)
                del self._people[_key(person)]
            self._ids = {}
        self._tell("revoked", found[0])
        return found[0]

    async def _admit(self, request: Request, now: int) -> Person:
        person = Person(
            request.channel, request.account, request.sender, now, request.name, request.handle, request.chat
        )
        await self._allowed.set(_key(person), msgspec.to_builtins(person), durable=True)
        await self._waiting.remove(request.id, durable=True)
        self._people[_key(person)] = person
        self._requests.pop(request.id, None)
        self._ids = {}
        self._tell("approved", person)
        return person

    def _named(self, request_id: str) -> Request:
        request = self._requests.get(request_id)
        if request is None or request.expires_at <= self._clock.now_ms():
            raise NotFound("pending DM access request no longer exists")
        return request

    async def _guarded(self, channel: str, now: int) -> None:
        tries = self._tries.get(channel)
        if tries is None:
            return
        left = tries.since + VALID_MS - now
        if left <= 0:
            del self._tries[channel]
            await self._wrong.remove(channel)
        elif tries.count >= TRIES:
            minutes = -(-left // 60_000)
            raise Conflict(
                f"{TRIES} wrong codes were tried at {channel}: none is taken in chats for {minutes} more minutes; "
                f"on the gateway's machine it still is: garra pairing approve {channel} CODE"
            )

    async def _missed(self, channel: str, now: int) -> None:
        known = self._tries.get(channel)
        tries = Tries(1, now) if known is None else replace(known, count=known.count + 1)
        self._tries[channel] = tries
        await self._wrong.set(channel, msgspec.to_builtins(tries), durable=True)

    async def _expire(self, now: int) -> None:
        for request in [each for each in self._requests.values() if each.expires_at <= now]:
            await self._waiting.remove(request.id)
            del self._requests[request.id]

    def _code(self) -> str:
        used = {request.code for request in self._requests.values()}
        while True:
            code = "".join(LETTERS[self._pick(len(LETTERS))] for _ in range(LENGTH))
            if code not in used:
                return code

    def _tell(self, what: str, who: Request | Person) -> None:
        for listener in tuple(self._listeners):
            listener(Happened(what, who.channel, who.account, who.sender))


def _key(person: Person) -> str:
    return f"{person.channel}:{person.account}:{person.sender}"


def _at(row: Request | Person, channel: str, account: str) -> bool:
    return channel in ("", row.channel) and account in ("", row.account)


def _clean(request: Mapping[str, str]) -> dict[str, Any]:
    """Raises UserError for what is no person's id: nothing stored ever stands for everybody."""
    sender = request.get("sender", "").strip()
    if not sender or sender == access.ANYONE:
        raise UserError(f"{sender!r} is no sender's id")
    names = ("channel", "account", "name", "handle", "chat")
    return {"sender": sender, **{name: _line(request.get(name, ""))[:256] for name in names}}


def _line(text: str) -> str:
    """A stranger's own words on one line: in a list they must not pass for another row."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
