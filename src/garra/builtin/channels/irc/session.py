"""One connection from its login to its end: rooms joined, messages stored in order, messages sent and confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count

from garra.builtin.channels.irc.codec import Me, Reader, timestamp_ms
from garra.builtin.channels.irc.line import Line, room, write
from garra.builtin.channels.irc.login import HISTORY, Login
from garra.builtin.channels.irc.people import People
from garra.builtin.channels.irc.settings import Settings
from garra.builtin.channels.irc.wire import Wire
from garra.core.value import frozen
from garra.sdk.channel import (
    Cursor,
    Fault,
    Ignored,
    Inbound,
    LinkLost,
    LinkRefused,
    Pulse,
    Receive,
    SendFailed,
    receive_all,
)
from garra.sdk.ports import Clock

WAITING = 5000
"""So many messages may wait to be stored. What comes beyond is not read until there is room; where none comes, or the
server has to be asked who each of them is of, it is dropped, and the owner told."""
ROOM_S = 20.0
"""So long at most nothing is read: servers give up who does not answer them."""
TOGETHER = 100
"""So many messages at most are stored at once."""
_CLOSED = frozenset({"403", "405", "407", "437", "461", "471", "473", "474", "475", "476", "477", "485", "489", "520"})
_FAULTS: dict[str, Fault] = {
    **dict.fromkeys(("401", "403", "442"), "gone"),
    **dict.fromkeys(("404", "408", "411", "412", "477", "482", "486", "489", "531", "716"), "refused"),
    **dict.fromkeys(("263", "437", "439"), "passing"),
    "417": "too_long",
}
NICK_S = (10.0, 60.0)
"""So often at most our own nick is asked for again: when it came free before our eyes, and just in case."""
_UNKNOWN_HOST = "u" * 11 + "@" + "h" * 63


@frozen
class Place:
    """What a session works with: the account's id and settings, and the host's doors."""

    account: str
    own: Settings
    clock: Clock
    cursor: Cursor


class Session:
    """One connection. `read` runs in a task of its own; `settle`, then `serve`."""

    def __init__(self, wire: Wire, place: Place, pulse: Pulse) -> None:
        self._wire, self._place, self._pulse = wire, place, pulse
        self._login = Login(place.own)
        self.people = People(wire, place.clock, lambda: self.me, by_name=place.own.by_name)
        self._queue: asyncio.Queue[Line | None] = asyncio.Queue()
        self._welcome, self._room = asyncio.Event(), asyncio.Event()
        self._numbers, self._begun_ms = count(1), place.clock.now_ms()
        self._asked_nick, self._saw_free = place.clock.monotonic(), float("-inf")
        self._behind: set[str] = set()
        self._histories: dict[str, str] = {}
        self._dropped = self._nameless = False
        self._said = asyncio.Lock()
        self.rooms: set[str] = set()

    @property
    def me(self) -> Me:
        return self._login.me

    @property
    def caps(self) -> set[str]:
        return self._login.caps

    @property
    def remembers(self) -> bool:
        """The server keeps what was said."""
        return self.caps >= HISTORY

    def new_id(self) -> str:
        """An id for a message that has none: unique, and gone with the connection."""
        return f"{self._begun_ms}-{next(self._numbers)}"

    # ---- the reading task

    async def read(self) -> None:
        """Until the connection ends; then whoever waits is told."""
        why: Exception = LinkLost("the connection was given up")
        try:
            for hello in self._login.hello():
                await self._wire.at_once(hello)
            while True:
                for line in await self._wire.batch():
                    self._pulse.alive()
                    await self._take(line)
        except (LinkLost, LinkRefused) as ended:
            why = ended
        finally:
            await self._wire.end(why)
            self._welcome.set()
            self._queue.put_nowait(None)

    async def _take(self, line: Line) -> None:
        for answer in self._login.heard(line):
            await self._wire.at_once(answer)
        if self._login.welcomed:
            self._welcome.set()
            await self._regain(line)
        match line.command:
            case "PRIVMSG" | "NOTICE" | "BATCH" | "CHATHISTORY" | "FAIL":
                await self._put(line)
            case "QUIT" | "PART" | "NICK" | "KICK" | "ACCOUNT":
                self.people.moved(line)
                self._left(line)

    async def _put(self, line: Line) -> None:
        if line.command not in {"PRIVMSG", "NOTICE"} or await self._has_room():
            self._queue.put_nowait(line)
        elif not self._dropped:
            self._dropped = True
            self._pulse.note("more messages come in than can be stored; some were dropped")

    async def _has_room(self) -> bool:
        """Whether one more may wait. Only what says by itself who it is of can be waited with: others need answers."""
        if self._queue.qsize() < WAITING or not self._told or self._dropped:
            return self._queue.qsize() < WAITING
        self._room.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(ROOM_S):
                await self._room.wait()
        return self._queue.qsize() < WAITING

    def _left(self, line: Line) -> None:
        if line.command == "KICK" and self.me.own(line.param(1)):
            self._pulse.note(f"{line.nick} has put us out of {line.param(0)}: {line.param(2)[:100]}")
        gone = line.param(1) if line.command == "KICK" else line.nick
        if line.command in {"KICK", "PART"} and self.me.own(gone):
            self.rooms.discard(self.me.same(line.param(0)))

    async def _regain(self, line: Line) -> None:
        """Ask for our own nick again: when it comes free before our eyes, and once in a while."""
        wanted, now = self._place.own.nick, self._place.clock.monotonic()
        if self.me.own(wanted):
            return
        free = line.command in {"QUIT", "NICK"} and self.me.same(line.nick) == self.me.same(wanted)
        if free and now - self._saw_free >= NICK_S[0]:
            self._saw_free = self._asked_nick = now
        elif now - self._asked_nick > NICK_S[1]:
            self._asked_nick = now
        else:
            return
        await self._wire.at_once(write("NICK", wanted))

    # ---- arriving

    async def settle(self) -> None:
        """Log in, enter the rooms, ask for what was missed. Raises LinkLost and LinkRefused."""
        try:
            async with asyncio.timeout(60):
                await self._welcome.wait()
        except TimeoutError:
            raise LinkLost("the server does not let us in") from None
        if self._wire.ended is not None:
            raise self._wire.ended
        if "BOT" in self._login.facts:
            await self._wire.write(write("MODE", self.me.nick, f"+{self._login.facts['BOT']}"))
        await self._identify()
        for name, key in self._place.own.channels:
            await self._join(name, key)
        if self.remembers:
            await self._catch_up()

    async def _identify(self) -> None:
        services = self._place.own.services
        if not services.on or self._login.logged_in:
            return
        word = services.password.reveal()
        said = [f"REGISTER {word} {services.register}"] if services.register else []
        named = services.account if services.account != self._place.own.nick else ""
        said.append(f"IDENTIFY {named} {word}".replace("  ", " "))
        if not self.me.own(self._place.own.nick):
            said.append(f"GHOST {self._place.own.nick} {word}")

        def answer(line: Line) -> str | None:
            if line.command in {"900", "401"}:
                return "" if line.command == "900" else f"there is no {services.name} here"
            from_them = line.command == "NOTICE" and self.me.same(line.nick) == self.me.same(services.name)
            return line.param(-1) if from_them else None

        try:
            told = await self._wire.ask([write("PRIVMSG", services.name, text) for text in said], answer, 5.0)
        except TimeoutError:
            told = f"{services.name} does not answer"
        if told and not self._login.logged_in:
            self._pulse.note(f"{services.name}: {told[:200].replace(word, '***')}")

    async def _join(self, name: str, key: str) -> None:
        def answer(line: Line) -> str | None:
            if line.command == "JOIN" and self.me.own(line.nick) and self.me.same(line.param(0)) == self.me.same(name):
                return "joined"
            shut = line.command in _CLOSED and self.me.same(line.param(1)) == self.me.same(name)
            return line.param(-1) or line.command if shut else None

        try:
            told = await self._wire.ask([write("JOIN", name, *filter(None, [key]))], answer, 15.0)
        except TimeoutError:
            told = "no answer"
        except ValueError:
            told = "no name of a channel"
        if told == "joined":
            self.rooms.add(self.me.same(name))
        else:
            self._pulse.note(f"{name} cannot be joined: {told[:100]}")

    async def _catch_up(self) -> None:
        """Ask who said something since the position; without one, take the present as it."""
        now = _stamp(self._place.clock.now_ms())
        since = await self._place.cursor.get()
        if since is None:
            await self._place.cursor.set(now)
        else:
            self._behind.add("*")
            ends = (f"timestamp={since}", f"timestamp={now}")
            await self._wire.write(write("CHATHISTORY", "TARGETS", *ends, "50"))

    # ---- storing

    async def serve(self, receive: Receive) -> None:
        """Store what comes, in order, until the connection ends. Raises LinkLost and LinkRefused."""
        said: list[Line] = []
        while (line := await self._queue.get()) is not None:
            self._room.set()
            if history := line.command in {"BATCH", "CHATHISTORY", "FAIL"}:
                await self._store(said, receive)
                await self._history(line)
            elif line.personal and not self.me.own(line.nick) and not self._of_services(line):
                said.append(line)
            if not history and (self._queue.empty() or not self._told or len(said) >= TOGETHER):
                await self._store(said, receive)
        await self._store(said, receive)
        raise self._wire.ended or LinkLost("the connection is gone")

    @property
    def _told(self) -> bool:
        """Each message tells who says it; otherwise the server is asked, which takes its time."""
        return "account-tag" in self.caps

    def _of_services(self, line: Line) -> bool:
        return line.command == "NOTICE" and self.me.same(line.nick) == self.me.same(self._place.own.services.name)

    async def _store(self, said: list[Line], receive: Receive) -> None:
        """Store what was said, and then the position. It is taken out of `said`."""
        lines, events = said.copy(), list[Inbound | Ignored]()
        said.clear()
        try:
            for line in lines:
                events.append(await self._event(line))
        finally:
            stored, fault = await receive_all(receive, events)
            times = [line.tags.get("time", "") for line in lines[:stored]]
            known = [time for time in times if timestamp_ms(time)]
            if self.remembers and not self._behind and known:
                await self._place.cursor.set(known[-1])
        if fault is not None:
            raise fault

    async def _event(self, line: Line) -> Inbound | Ignored:
        direct, now = not self.me.room(line.param(0)), self._place.clock.now_ms()
        reader = Reader(self._place.account, self.me, self.new_id, self._place.own.by_name)
        event = reader.read(line, await self._account(line, direct=direct), now)
        if isinstance(event, Inbound) and event.sender.id:
            self.people.met(event.sender.id, line.nick)
        elif isinstance(event, Inbound) and (direct or event.mentioned) and not self._nameless:
            self._nameless = True
            self._pulse.note(f"{line.nick} is logged in to no account, so nobody knows who that is: not heard")
        return event

    async def _account(self, line: Line, *, direct: bool) -> str:
        if self._told or "batch" in line.tags:
            return line.tags.get("account", "")
        try:
            return await self.people.account(line, direct=direct)
        except TimeoutError:
            raise LinkLost("the server does not say who somebody is") from None

    async def _history(self, line: Line) -> None:
        """Batches: first those who said something, then what each said; the position moves only after the last."""
        first = line.param(0)
        match line.command:
            case "CHATHISTORY" if first == "TARGETS":
                since = await self._place.cursor.get()
                self._behind.add(self.me.same(line.param(1)))
                asked = (line.param(1), f"timestamp={since}", self._login.facts.get("CHATHISTORY") or "100")
                await self._wire.write(write("CHATHISTORY", "AFTER", *asked))
            case "BATCH" if first.startswith("+"):
                self._histories[first[1:]] = "*" if line.param(1).endswith("targets") else self.me.same(line.param(2))
            case "BATCH":
                self._behind.discard(self._histories.pop(first[1:], ""))
            case "FAIL" if first == "CHATHISTORY":
                self._behind.discard(next((self.me.same(w) for w in line.params[3:-1] if w in self._behind), "*"))

    # ---- sending

    def room_for(self, target: str) -> int:
        """Bytes of words in one message to `target`."""
        return room(self.me.source or f"{self.me.nick}!{_UNKNOWN_HOST}", target)

    async def say(self, target: str, texts: Sequence[str], reply_to: str = "") -> str:
        """Lines to a nick or room; the id of the first. Raises SendFailed."""
        tags = {"+draft/reply": reply_to} if reply_to and "message-tags" in self.caps else None
        lines = [write("PRIVMSG", target, text, tags=None if at else tags) for at, text in enumerate(texts)]
        sign, echoes = self.new_id(), len(lines)
        if "echo-message" not in self.caps:
            lines, echoes = [*lines, write("PING", sign)], 0
        async with self._said:
            if self._wire.ended is not None:
                raise SendFailed("passing", "the connection is gone")
            try:
                told: str | SendFailed = await self._wire.ask(
                    lines, self._confirmed(target, sign, echoes), 30.0 + len(lines)
                )
            except (LinkLost, TimeoutError):
                raise SendFailed("unsure", "the connection broke before the server had confirmed it") from None
        if isinstance(told, SendFailed):
            raise SendFailed("unsure", told.message) if told.fault == "passing" and len(texts) > 1 else told
        return told

    def _confirmed(self, target: str, sign: str, echoes: int) -> Callable[[Line], str | SendFailed | None]:
        """What tells that the server has taken a message: its echoes, or the answer to a PING behind it."""
        ids = list[str]()

        def answer(line: Line) -> str | SendFailed | None:
            me = self.me  # our nick may change meanwhile
            if line.command == "PONG":
                return sign if line.param(-1) == sign else None
            if line.command == "PRIVMSG" and me.own(line.nick) and me.same(line.param(0)) == me.same(target):
                ids.append(line.tags.get("msgid") or sign)
                return ids[0] if len(ids) == echoes else None
            fault = _FAULTS.get(line.command)
            if fault and (me.same(line.param(1)) == me.same(target) or line.command in {"412", "417"}):
                wait = 60.0 if fault == "passing" else None
                return SendFailed(fault, f"the server says of {target}: {line.param(-1)[:200]}", wait)
            return None

        return answer


def _stamp(now_ms: int) -> str:
    """A time as servers write it."""
    seconds, ms = divmod(now_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"
