"""Chats in a resident process: links, inbox, kernel, outbox and couriers, tied together, begun and ended in order."""

from __future__ import annotations

import asyncio
import importlib
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from garra import __version__
from garra.app import accounts, asking, compaction, hearing, nights, webchat, weighing
from garra.app.arrivals import Arrivals
from garra.app.couriers import Couriers, Trade
from garra.app.discreet import Discreet
from garra.app.door import Door
from garra.app.house import House, new_id
from garra.app.owners import Owners
from garra.config import view
from garra.config.sections import Config
from garra.core import redact
from garra.core.errors import GarraError
from garra.core.ids import SessionKey
from garra.core.lineage import Child, Left
from garra.core.reports import Made
from garra.core.value import frozen
from garra.domains.access.allowlist import Accounts
from garra.domains.access.pairing import Pairing
from garra.domains.delivery.accounts import WEBCHAT, LinkKey, Setup
from garra.domains.delivery.book import Book
from garra.domains.delivery.desk import Desk
from garra.domains.delivery.draft import Draft
from garra.domains.delivery.engine import Embedded
from garra.domains.delivery.handles import SPACE, Handles
from garra.domains.delivery.inbox import Inbox, InboxRow
from garra.domains.delivery.ledger import Ledger, Query
from garra.domains.delivery.link import Doors
from garra.domains.delivery.links import Links
from garra.domains.delivery.media import MediaRoot
from garra.domains.delivery.outbox import Outbox
from garra.domains.delivery.owner import Owner
from garra.domains.delivery.replies import Replies
from garra.domains.delivery.shares import Shares
from garra.domains.delivery.timeline import Timeline
from garra.domains.questions.register import Questions
from garra.io.files.root import Root
from garra.io.http.door import GuardedHttp
from garra.io.store.shelf import Shelf
from garra.runs.switch import Switch
from garra.sdk.channel import Address, Channel, File
from garra.sdk.channel import Ports as ChannelPorts
from garra.sdk.ports import Via
from garra.turns.attached import Fetched
from garra.turns.cards import Cards
from garra.turns.cards import Ports as CardPorts
from garra.turns.histories import Histories
from garra.turns.kernel import Kernel
from garra.turns.parts import Asked, Ports
from garra.turns.pump import Hand, Pump
from garra.turns.reports import Post, Reports
from garra.turns.voice import Chats
from garra.turns.webchat import Ports as WebPorts
from garra.turns.webchat import WebChat

log = logging.getLogger(__name__)

LEFT: Final = 10_000
"""Messages of operators that a start goes on with at most."""

SWEEP_S: Final = 6 * 3600.0
"""How often what is old and finished is cleared away."""


@frozen
class Bookmark:
    """Where one account's reading stands, as `sdk.channel.Cursor`."""

    shelf: Shelf
    name: str

    async def get(self) -> str | None:
        found: str | None = await self.shelf.get(self.name)
        return found

    async def set(self, value: str) -> None:
        await self.shelf.set(self.name, value)


class Channels:
    """Everything about chats that one process owns. `start` once the gateway stands; `rest`, then `close`.

    `hide` is told the accounts' credentials, which the log must never show. `put` is the gateway's way to say something
    in a session, set before the start.
    """

    def __init__(self, house: House, hide: Callable[[Sequence[str]], None], switch: Switch) -> None:
        self._house, self._hide, self._switch = house, hide, switch
        self._credentials: tuple[str, ...] = ()
        db, clock, spawn = house.db, house.clock, house.spawn
        self.inbox, timeline = Inbox(db, clock), Timeline(db, clock)
        self.outbox = Outbox(db, clock, house.discretion.now)
        self._ledger = Ledger(db, self.inbox, self.outbox, timeline)
        self._media = MediaRoot(house.paths.media, clock)
        self.handles = Handles(Shelf(db, SPACE), self._media)
        self._ears = hearing.ears(house)
        self.pairing = Pairing(lambda name: Shelf(db, name), clock, secrets.randbelow)
        self._rules = Accounts(lambda: house.live.config)
        self._cursors = Shelf(db, "channel-cursors")
        self._public = GuardedHttp(self._way, guard=True, bound=house.discretion.bound)
        door = Door(self.inbox, self._rules, self.pairing, lambda key: self.links.bot(key), clock, spawn)
        self.links = Links(Doors(self._make, door.receive, self._tell, clock, spawn))
        self.shares = Shares(
            Shelf(db, "file-links"), self._media, clock, lambda: house.live.config.gateway.public_origin
        )
        self._replies = Replies(link=self.shares.link)
        self._couriers = Couriers(self._trade())
        owners = Owners(
            lambda: house.live.config, self.pairing, self._rules, self._couriers.running, self._couriers.channel
        )
        self._owner = Owner(self.inbox, self.outbox, owners.elsewhere, clock=clock, spawn=spawn)
        self._voice = Chats(
            lambda: house.live.config,
            self._replies,
            house.runs,
            stage=self._couriers.stage,
            limits=self._couriers.limits,
        )
        self.desk = self._desk(timeline)
        self.questions = Questions(Shelf(db, "questions"), clock, spawn, new_id)
        self._cards = Cards(house.approvals, self._card_ports(owners))
        house.approvals.routes.append(self._cards)
        self.outbox.subscribe(self._cards.heard)
        engine = Embedded(self.inbox, clock, spawn)
        hand = Hand(self.inbox, engine, {})
        self._ports = self._kernel_ports(hand, timeline)
        kernel = Kernel(self._ports, Histories(Shelf(db, "group-history")))
        self._pump = Pump(Reports(kernel, self._ports, house.subagents), hand, self._ports)
        self.put: webchat.Put | None = None
        book = Book(db, clock)
        self.webchat = WebChat(WebPorts(book, house.runs, house.sessions, clock, spawn, log.warning))
        house.subagents.post = Post(self.inbox, self.webchat, self._ports).give
        house.subagents.share = self._share
        self._turn = asyncio.Lock()
        self._arrivals = Arrivals(clock, spawn, self._follow)
        self._blots: tuple[Any, Callable[[str], str]] = (None, str)

    async def _share(self, child: Child, made: Made) -> tuple[Left, ...]:
        """As `runs.subagents.Share`, loaded with the first that leaves something."""
        leaving = await asyncio.to_thread(importlib.import_module, "garra.app.leaving")
        found: tuple[Left, ...] = await leaving.Leaving(self._house.assembler, self._media, self.handles).share(
            child, made
        )
        return found

    async def start(self) -> None:
        """Go on with what an earlier process left, then let the links run."""
        house = self._house
        await self.pairing.load()
        await self.questions.load()
        await self.shares.load()
        found = await self._configured()
        self._couriers.follow(found)
        await self._owner.start(self._ledger)
        await self._cards.load()
        await self._pump.start()
        if self._switch.paused:
            house.spawn(self._go_on(), "what waits for the end of the pause")
        else:
            await self._go_on()
        await self.links.apply(found)
        house.live.subscribe(self._edited)
        house.spawn(self._sweep(), "sweep of messages")

    async def _go_on(self) -> None:
        await self._switch.cleared()
        await self._web_resume()
        await self._house.subagents.resume()

    async def _web_resume(self) -> None:
        """Go on with what operators had asked; newest first is how they are listed."""
        left = await self._ledger.rows(Query("in", "adopted", WEBCHAT, limit=LEFT))
        rows = [row for row in reversed(left) if isinstance(row, InboxRow)]
        await self.webchat.resume(rows, self._say)

    async def _say(self, key: SessionKey, text: str) -> None:
        if self.put is not None:
            await self.put(key, text, "")

    async def _halt(self, key: str) -> int:
        """End a session's programs and its sub-agents; how many of these."""
        await self._house.supervisor.stop(SessionKey(key), background=True)
        return len(await self._house.subagents.stop_under(key))

    def rest(self) -> None:
        """Take no more messages in hand; those in hand go on."""
        self._pump.stop()

    async def close(self) -> None:
        """Receive and send no more; what is stored stays stored."""
        await self.links.close()
        await self._couriers.close()
        self._voice.close()
        self._owner.close()
        self._cards.close()
        await self._public.close()

    def _desk(self, timeline: Timeline) -> Desk:
        return Desk(
            self.inbox,
            self.outbox,
            timeline,
            self._ledger,
            self._media,
            self._couriers.running,
            self.worded,
            lambda: self._house.plugins.names("channel"),
            self.shares.link,
            self._couriers.channel,
        )

    def _trade(self) -> Trade:
        house = self._house
        return Trade(
            self.outbox,
            self.links,
            house.clock,
            house.spawn,
            self._make,
            self._replies.read,
            self._clean,
            self._tell,
            self.shares.link,
        )

    def _kernel_ports(self, hand: Hand, timeline: Timeline) -> Ports:
        house = self._house
        return Ports(
            inbox=hand,
            outbox=self.outbox,
            timeline=timeline,
            config=lambda: house.live.config,
            sessions=house.sessions,
            runs=house.runs,
            models=house.models,
            pairing=self.pairing,
            voice=self._voice,
            clock=house.clock,
            spawn=house.spawn,
            workspace=lambda agent: str(house.paths.workspace(agent, house.live.config)),
            halt=self._halt,
            compact=compaction.asked(house.sessions, house.runs, new_id),
            dreaming=lambda agent, words, owner: nights.said(house, agent, words, owner),
            context=weighing.asked(house, self.pairing.allowed),
            warn=log.warning,
            attachments=Fetched(self._media, self._couriers.channel, self._ears, self.handles),
            version=__version__,
            approvals=house.approvals,
            cards=self._cards.shown,
            questions=self.questions,
            subagents=house.subagents,
            switch=self._switch,
            ledger=house.purse.ledger,
        )

    def _card_ports(self, owners: Owners) -> CardPorts:
        async def attach(channel: str, name: str, data: bytes) -> File:
            return (await self._media.add(channel, name, data, mime="text/plain")).file()

        return CardPorts(
            self.outbox,
            asking.places(self._house, self._rules, owners, ledger=self._ledger, couriers=self._couriers),
            self._voice.card,
            self._couriers.limits,
            attach,
            self._house.clock,
            self._house.spawn,
        )

    # ---- accounts

    async def _configured(self) -> list[Setup]:
        house = self._house
        plugins = house.plugins.of("channel")
        found = await asyncio.to_thread(accounts.configured, plugins, house.live.snapshot, house.env)
        self._credentials, self._blots = accounts.secrets(found), (None, str)
        self._hide(self._credentials)
        house.discretion.also(self._credentials)
        await asyncio.to_thread(accounts.furnish, house.paths, plugins, found)
        await self._arrivals.expect(plugins, found)
        return [*found, webchat.SETUP]

    def _edited(self, old: Config, new: Config) -> None:
        if old.channels != new.channels or old.plugins != new.plugins:
            self._house.spawn(self._follow(), "channels follow the configuration")

    async def _follow(self) -> None:
        async with self._turn:
            found = await self._configured()
            self._couriers.follow(found)
            await self.links.apply(found)

    def _make(self, setup: Setup) -> Channel:
        if setup.channel == WEBCHAT:
            return webchat.WebChannel(lambda: self.put)
        house = self._house
        cursor = Bookmark(self._cursors, str(setup.key))
        media, state = Root(house.paths.media), Root(accounts.folder(house.paths, setup.key))
        ports = ChannelPorts(house.http, house.clock, house.spawn, cursor, media, house.http, state, self._public)
        return Discreet(house.plugins.channel(setup.channel, setup.account, ports), self._clean)

    def _way(self) -> Via:
        config = self._house.live.config
        return Via(config.proxy_url or None, config.ca_file or None)

    # ---- words

    def worded(self, key: str, address: Address, text: str) -> Sequence[Draft]:
        return self._voice.drafts(key, Asked(address), text)

    def _clean(self, text: str) -> str:
        snapshot = self._house.live.snapshot
        if self._blots[0] is not snapshot:
            self._blots = snapshot, redact.cleaner((*view.known_secrets(snapshot), *self._credentials))
        return self._blots[1](text)

    def _tell(self, key: LinkKey, text: str) -> None:
        """A word about an account, by another one where there is one; the log has it in any case."""
        log.warning("%s", text)
        self._owner.tell(Address(key.channel, key.account, "", "direct"), text, text)

    def notice(self, about: Address, text: str) -> None:
        """A word to the owner, by another account than the one it is about."""
        self._owner.tell(about, text, text)

    async def _sweep(self) -> None:
        while True:
            try:
                await self._ledger.sweep(self._house.clock.now_ms())
                await self._media.sweep()
                await self.handles.sweep()
                await self._ears.forget()
                await self._house.approvals.sweep()
                if (ledger := self._house.purse.ledger) is not None:
                    await ledger.sweep()
            except GarraError as error:
                log.warning("old messages stay for now: %s", error.message)
            await self._house.clock.sleep(SWEEP_S)
