"""One stream, by slixmpp: log in, send, ask, confirm. What comes in is queued: no work is done in its callbacks."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from garra.builtin.channels.xmpp.codec import CLIENT, NOBODY, SID, Heard, bare, resource
from garra.builtin.channels.xmpp.outgoing import Stanza, refusal
from garra.builtin.channels.xmpp.rooms import Rooms
from garra.builtin.channels.xmpp.settings import Settings
from garra.core.errors import Unavailable
from garra.core.value import frozen
from garra.sdk.channel import LinkLost, LinkRefused, SendFailed
from garra.sdk.ports import Dial, Spawn

MAM, RSM = "{urn:xmpp:mam:2}", "{http://jabber.org/protocol/rsm}"
FORWARD, DELAYED = "{urn:xmpp:forward:0}forwarded", "{urn:xmpp:delay}delay"
CARBON = "{urn:xmpp:carbons:2}"
WAITING = 5_000
"""Stanzas that may wait to be stored."""
LOGIN_S, ANSWER_S, CONFIRM_S = 60.0, 30.0, 30.0
_LATER = frozenset({"temporary-auth-failure", "aborted"})


@frozen
class Ack:
    """The server wants to know what we have; `handled` is how many stanzas came before it asked."""

    handled: int


@frozen
class Page:
    """Part of an archive, oldest first; `complete`: nothing is behind it. `last` is the id of its last."""

    items: tuple[Heard, ...]
    complete: bool


class Refused(Exception):
    """An answer of type error."""

    def __init__(self, xml: Element) -> None:
        self.fault = refusal(xml)
        super().__init__(self.fault.message)


def _deaf() -> None:
    """Where nobody wants to be told of life."""


def _made(own: Settings, loop: asyncio.AbstractEventLoop, trust: Any, attempt: Callable[..., Any]) -> Any:
    """Blocks: the library's own modules are read."""
    logging.getLogger("slixmpp").setLevel(
        logging.CRITICAL
    )  # it writes whole stanzas, and faults that we tell ourselves
    library = importlib.import_module("slixmpp")
    kind = type(
        "Client",
        (library.ClientXMPP,),
        {"_attempt_connection": attempt, "reschedule_connection_attempt": lambda _: None},
    )
    open_way = own.security == "none"
    plain = {"unencrypted_plain": open_way, "unencrypted_scram": open_way}
    config = {"feature_mechanisms": plain, "xep_0198": {"allow_resume": False, "window": 1 << 30}}
    client = kind(own.jid, own.password.reveal(), plugin_config=config, loop=loop, ssl_context=trust)
    client.plugin["feature_mechanisms"].config.update(plain)
    client.enable_direct_tls, client.enable_plaintext = own.security == "tls", open_way
    client.enable_starttls = own.security == "starttls"
    client.auto_authorize = client.auto_subscribe = None
    client.whitespace_keepalive = False
    client.register_plugin("xep_0198")
    client.init_plugins()
    return client


class Wire:
    """A stream that is open, or was."""

    def __init__(self, own: Settings, rooms: Rooms) -> None:
        self.own, self.rooms = own, rooms
        self.queue: asyncio.Queue[Heard | Ack | LinkLost] = asyncio.Queue()
        self.ended: LinkLost | None = None
        self.heard: Callable[[], None] = _deaf
        self._client: Any = None
        self._sock: Any = None
        self._settled: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[str, asyncio.Future[str | SendFailed]] = {}
        self._pages: dict[str, list[Heard]] = {}
        self._condition = ""

    # ---- opening and closing

    async def open(self, dial: Dial, spawn: Spawn) -> None:
        """Connect, agree on TLS, log in. Raises LinkLost and LinkRefused."""
        own, loop = self.own, asyncio.get_running_loop()
        try:
            sock = await dial.plug(own.host, own.port, spawn, tls=False, via=own.via)
            trust = await dial.trust(own.via)
        except Unavailable as fault:
            raise LinkLost(fault.message) from None

        async def attempt(client: Any, *_: Any) -> bool:
            context = client.get_ssl_context() if own.security == "tls" else None
            named = own.domain if context else None
            try:
                await loop.create_connection(lambda: client, sock=sock, ssl=context, server_hostname=named)
            except OSError as error:
                self._settle(LinkLost(f"{own.host} cannot be reached: {error}"))
                return False
            return True

        self._sock = sock
        self._client = await asyncio.to_thread(_made, own, loop, trust, attempt)
        self._listen()
        self._client.connect(own.host, own.port)
        try:
            async with asyncio.timeout(LOGIN_S):
                refused = await self._settled
        except TimeoutError:
            raise LinkLost(f"{own.host} does not let us in") from None
        if refused is not None:
            raise refused

    def _listen(self) -> None:
        client = self._client
        handlers = importlib.import_module("slixmpp.xmlstream.handler")
        matchers = importlib.import_module("slixmpp.xmlstream.matcher")
        for name, take in (("message", self._message), ("presence", self._presence)):
            matcher = matchers.MatchXPath(f"{CLIENT}{name}")
            client.register_handler(handlers.Callback(f"garra {name}", matcher, take, instream=True))
        client.add_filter("in", self._alive)
        client.add_event_handler("session_start", lambda _: self._settle(None))
        client.add_event_handler("failed_auth", self._failed)
        client.add_event_handler("failed_all_auth", lambda _: self._settle(self._unwelcome()))
        client.add_event_handler("ssl_invalid_chain", lambda error: self._over(f"its certificate is no good: {error}"))
        client.add_event_handler("disconnected", lambda why: self._over(str(why or "the server closed the connection")))
        client.add_event_handler("stanza_acked", lambda stanza: self._confirm(stanza["id"], ""))
        client.plugin["xep_0198"].send_ack = self._asked

    def _alive(self, stanza: Any) -> Any:
        self.heard()
        return stanza

    def _asked(self) -> None:
        """The server is told only what is stored: the answer stands in line behind what came before."""
        self.queue.put_nowait(Ack(self._client.plugin["xep_0198"].handled))

    def _failed(self, stanza: Any) -> None:
        self._condition = str(stanza["condition"])

    def _unwelcome(self) -> LinkLost | LinkRefused:
        if self._condition in _LATER:
            return LinkLost(f"{self.own.host} does not let us in now: {self._condition}")
        if self._condition:
            return LinkRefused(f"{self.own.host} refuses {self.own.jid} or the password: {self._condition}")
        return LinkRefused(
            f"{self.own.host} offers no safe way to log in. Without TLS there is none; see channels.xmpp.security."
        )

    def _settle(self, fault: Exception | None) -> None:
        if not self._settled.done():
            self._settled.set_result(fault)

    def _over(self, why: str) -> None:
        self.ended = self.ended or LinkLost(f"{self.own.host}: {why}"[:300])
        self._settle(self.ended)
        self.queue.put_nowait(self.ended)
        for future in self._waiting.values():
            if not future.done():
                future.set_result(SendFailed("unsure", "the connection broke before the server had confirmed it"))

    def close(self) -> None:
        """End it, without waiting."""
        self._over("the connection was given up")
        if self._client is not None:
            self._client.abort()
            self._client.cancel_connection_attempt()
            if (filters := vars(self._client).get("_run_out_filters")) is not None:
                filters.cancel()
        if self._sock is not None:
            self._sock.close()

    # ---- what comes in

    def _message(self, stanza: Any) -> None:
        xml: Element = stanza.xml
        sender, me = xml.get("from", ""), self.own.jid
        if (result := xml.find(f"{MAM}result")) is not None:
            self._archived(result, bare(sender or me))
            return
        for kind in ("received", "sent"):
            if (carbon := xml.find(f"{CARBON}{kind}")) is not None:
                inner = carbon.find(f"{FORWARD}/{CLIENT}message")
                if kind == "received" and bare(sender or me) == me and inner is not None:
                    self.queue.put_nowait(Heard(inner))
                return
        if xml.get("type") == "error":
            self._confirm(xml.get("id", ""), refusal(xml))
            return
        heard = Heard(xml)
        if xml.get("type") == "groupchat":
            heard = Heard(xml, self.rooms.who(bare(sender), resource(sender)))
            if resource(sender) == self.rooms.nicks.get(bare(sender)):
                marks = [
                    one.get("id", "")
                    for one in xml.findall(f"{SID}stanza-id")
                    if bare(one.get("by", "")) == bare(sender)
                ]
                self._confirm(xml.get("id", ""), next(iter(marks), ""))
        self.queue.put_nowait(heard)
        if self.queue.qsize() > WAITING:  # the archive has it all, and gives it in pages
            self._over("more comes in than can be stored")
            self._client.abort()

    def _archived(self, result: Element, owner: str) -> None:
        page = self._pages.get(f"{owner} {result.get('queryid', '')}")
        message = result.find(f"{FORWARD}/{CLIENT}message")
        delay = result.find(f"{FORWARD}/{DELAYED}")
        if page is None or message is None:
            return
        who = self.rooms.archived(owner, message) if owner != self.own.jid else NOBODY
        page.append(Heard(message, who, result.get("id", ""), delay.get("stamp", "") if delay is not None else ""))

    def _presence(self, stanza: Any) -> None:
        self.rooms.presence(stanza.xml)

    def _confirm(self, name: str, told: str | SendFailed) -> None:
        future = self._waiting.get(name)
        if future is not None and not future.done():
            future.set_result(told)

    # ---- what goes out

    def send(self, xml: Element) -> None:
        """Give it to the stream. Raises LinkLost."""
        if self.ended is not None:
            raise self.ended
        self._client.send(self._client._build_stanza(xml))  # noqa: SLF001 - counted for the server's acknowledgement

    def acknowledge(self, handled: int) -> None:
        self._client.send_raw(f"<a xmlns='urn:xmpp:sm:3' h='{handled}'/>")

    async def ask(self, kind: str, to: str | None, payload: Element, wait_s: float = ANSWER_S) -> Element:
        """A question and its answer. Raises Refused, LinkLost."""
        if self.ended is not None:
            raise self.ended
        errors = importlib.import_module("slixmpp.exceptions")
        iq = self._client.make_iq(ito=to, itype=kind)
        iq.append(payload)
        try:
            answer = await iq.send(timeout=wait_s)
        except errors.IqError as error:
            raise Refused(error.iq.xml) from None
        except errors.IqTimeout:
            raise LinkLost(f"{to or self.own.host} does not answer") from None
        found: Element = answer.xml
        return found

    async def confirmed(self, stanza: Stanza, *, group: bool) -> str:
        """Send a message and wait for the proof that it was taken: the room's echo, or the server's acknowledgement.

        The room's id of it, where that is told. Raises SendFailed.
        """
        future: asyncio.Future[str | SendFailed] = asyncio.get_running_loop().create_future()
        self._waiting[stanza.id] = future
        try:
            self.send(stanza.xml)
            async with asyncio.timeout(CONFIRM_S):
                if not group:
                    await self._behind()
                told = await future
        except LinkLost:
            raise SendFailed("passing", "there is no connection") from None
        except TimeoutError:
            raise SendFailed("unsure", "the server did not confirm it in time") from None
        finally:
            del self._waiting[stanza.id]
        if isinstance(told, SendFailed):
            raise told
        return told

    async def _behind(self) -> None:
        """Ask for the acknowledgement. Servers without one answer a ping, when they have taken what came before it."""
        if "stream_management" in self._client.features:
            self._client.send(
                "<r xmlns='urn:xmpp:sm:3'/>"
            )  # in line behind the message, which the library's own is not
            return
        names = tuple(self._waiting)
        try:
            await self.ping()
        except LinkLost:
            return
        for name in names:
            self._confirm(name, "")

    async def ping(self, to: str | None = None) -> None:
        """Raises LinkLost; a refusal is an answer as well."""
        try:
            await self.ask("get", to or self.own.domain, Element("{urn:xmpp:ping}ping"))
        except Refused:
            return

    async def features(self, of: str) -> set[str]:
        """What an entity can do; nothing where it does not say."""
        try:
            found = await self.ask("get", of, Element("{http://jabber.org/protocol/disco#info}query"))
        except Refused:
            return set()
        return {one.get("var", "") for one in found.iter("{http://jabber.org/protocol/disco#info}feature")}

    async def page(self, owner: str, name: str, **where: str) -> Page:
        """Part of an archive: `after` an id, `before` one (empty: the end), or from a `start` on.

        Raises Refused, LinkLost.
        """
        query = Element(f"{MAM}query", {"queryid": name})
        if start := where.get("start"):
            form = SubElement(query, "{jabber:x:data}x", {"type": "submit"})
            for key, value in (("FORM_TYPE", MAM.strip("{}")), ("start", start)):
                SubElement(SubElement(form, "{jabber:x:data}field", {"var": key}), "{jabber:x:data}value").text = value
        limits = SubElement(query, f"{RSM}set")
        SubElement(limits, f"{RSM}max").text = where.get("most", "50")
        for key in ("after", "before"):
            if key in where:
                SubElement(limits, f"{RSM}{key}").text = where[key]
        found = self._pages[f"{owner} {name}"] = []
        try:
            answer = await self.ask("set", owner if owner != self.own.jid else None, query)
        finally:
            del self._pages[f"{owner} {name}"]
        end = answer.find(f"{MAM}fin")
        return Page(tuple(found), end is None or end.get("complete") == "true")
