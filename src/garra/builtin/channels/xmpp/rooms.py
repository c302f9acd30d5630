"""Who sits in which room, as the rooms say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from xml.etree.ElementTree import Element, SubElement

from garra.builtin.channels.xmpp.codec import CLIENT, MUC_USER, NOBODY, OCCUPANT, Occupant, bare, resource
from garra.builtin.channels.xmpp.outgoing import refusal

MUC = "{http://jabber.org/protocol/muc}"
HIDDEN = "urn:xmpp:occupant-id:0"


class Rooms:
    """`nicks` are ours by room, `marking` the rooms whose marks of people are their own, `open` those that show
    real addresses, `archives` those that keep what is said. `note` is told of trouble.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self.nicks: dict[str, str] = {}
        self.marking: set[str] = set()
        self.archives: set[str] = set()
        self.open: set[str] = set()
        self._people: dict[str, dict[str, Occupant]] = {}
        self._entering: dict[str, asyncio.Future[str]] = {}
        self._note = note

    def who(self, room: str, nick: str) -> Occupant:
        return self._people.get(room, {}).get(nick, NOBODY)

    def archived(self, room: str, message: Element) -> Occupant:
        """Who said what a room has kept. Its word for it counts where it shows everybody, and says it once: elsewhere a
        sender could have written that part. Else somebody with the same mark who is there now.
        """
        items = message.findall(f"{MUC_USER}x/{MUC_USER}item")
        if room in self.open and len(items) == 1:
            return Occupant(items[0].get("jid", ""))
        mark = message.find(OCCUPANT)
        named = mark.get("id", "") if mark is not None and room in self.marking else ""
        return next((one for one in self._people.get(room, {}).values() if named and one.mark == named), NOBODY)

    def presence(self, xml: Element) -> None:
        """Somebody came, went, or changed; or we did."""
        room, nick = bare(xml.get("from", "")), resource(xml.get("from", ""))
        if room not in self.nicks and room not in self._entering:
            return
        if xml.get("type") == "error":
            fault = refusal(xml)
            self._entered(
                room, "conflict" if xml.find(f"{CLIENT}error/*") is not None and _taken(xml) else fault.message
            )
            return
        codes = {one.get("code") for one in xml.findall(f"{MUC_USER}x/{MUC_USER}status")}
        if xml.get("type") == "unavailable":
            self._people.get(room, {}).pop(nick, None)
            if "110" in codes and "303" not in codes:
                self.nicks.pop(room, None)
                self._note(f"the bot was put out of the room {room}")
            return
        item, mark = xml.find(f"{MUC_USER}x/{MUC_USER}item"), xml.find(OCCUPANT)
        who = Occupant(item.get("jid", "") if item is not None else "", mark.get("id", "") if mark is not None else "")
        self._people.setdefault(room, {})[nick] = who
        if "110" in codes:
            self.nicks[room] = nick
            self._entered(room, "")

    def _entered(self, room: str, fault: str) -> None:
        future = self._entering.get(room)
        if future is not None and not future.done():
            future.set_result(fault)

    async def enter(self, send: Callable[[Element], None], room: str, nick: str, password: str) -> str:
        """Go in; empty when we are, else why not."""
        for attempt in (nick, f"{nick}_", f"{nick}__"):
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._entering[room] = future
            xml = Element(f"{CLIENT}presence", {"to": f"{room}/{attempt}"})
            inside = SubElement(xml, f"{MUC}x")
            SubElement(inside, f"{MUC}history", {"maxstanzas": "0"})
            if password:
                SubElement(inside, f"{MUC}password").text = password
            try:
                send(xml)
                async with asyncio.timeout(20):
                    fault = await future
            except TimeoutError:
                return "the room does not answer"
            finally:
                del self._entering[room]
            if fault != "conflict":
                return fault
        return "the nick is taken"


def _taken(xml: Element) -> bool:
    return xml.find(f"{CLIENT}error/{{urn:ietf:params:xml:ns:xmpp-stanzas}}conflict") is not None
