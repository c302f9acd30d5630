"""The chat at a terminal: what is on the screen, and what a key or a command does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static, TextArea

from garra.client.quick import fresh
from garra.client.wire import Event, Link
from garra.core.errors import GarraError
from garra.core.thinking import LEVELS
from garra.core.value import frozen
from garra.faces.tui import commands, standing
from garra.faces.tui.backend import NOTICE, Backend, Choice
from garra.faces.tui.composer import Composer
from garra.faces.tui.conversation import Conversation
from garra.faces.tui.items import Facts, Item, Notice, of_history
from garra.faces.tui.picker import Picker
from garra.faces.tui.theme import INK, PAPER
from garra.faces.tui.transcript import Transcript
from garra.sdk.ports import Clock

log = logging.getLogger(__name__)


@frozen
class Opening:
    """What the person asked for on starting. Empty text means: not said. `command` is how they call this program."""

    session_key: str = ""
    agent_id: str = ""
    model: str = ""
    thinking: str = ""
    message: str = ""
    notices: tuple[str, ...] = ()
    history: int = 100
    theme: str = INK.name
    command: str = "garra"


@dataclass
class News(Message):
    """Something came from the gateway."""

    news: Event | Link


class Chat(App[int]):
    """One screen: the conversation, where to write, and one line on how things stand."""

    CSS_PATH = "chat.tcss"
    TITLE = "Garra"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "stop"),
        Binding("ctrl+c", "clear_or_leave", "leave", priority=True),
        Binding("ctrl+d", "leave", "leave", priority=True),
        Binding("ctrl+o", "fold", "tools", priority=True),
        Binding("ctrl+t", "think_aloud", "thinking", priority=True),
        Binding("ctrl+p", "run('sessions')", "sessions", priority=True),
        Binding("ctrl+l", "run('models')", "models", priority=True),
        Binding("ctrl+g", "run('agents')", "agents", priority=True),
        Binding("pageup", "scroll(-1)", priority=True),
        Binding("pagedown", "scroll(1)", priority=True),
    ]

    def __init__(self, backend: Backend, opening: Opening, clock: Clock) -> None:
        super().__init__()
        for theme in (INK, PAPER):
            self.register_theme(theme)
        self.theme = opening.theme
        self._backend, self._opening, self._clock = backend, opening, clock
        self._talk = Conversation(opening.session_key)
        self._agent = opening.agent_id
        self._facts = Facts()
        self._link: Link | None = None
        self._thinking = opening.thinking
        self._waiting: list[tuple[str, str]] = []
        self._notices = 0
        self._leaving = False
        self._begun = False

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        yield Transcript()
        with Vertical(id="foot"):
            yield Static(id="hints")
            with Vertical(id="box"):
                yield Composer()
            with Horizontal(id="status"):
                yield Static(id="facts")
                yield Static(id="doing")

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own colours, for themes that lack them."""
        return INK.variables

    def on_mount(self) -> None:
        self.query_one(Composer).focus()
        self.set_interval(1.0, self._tell)
        self._tell()
        self._do(self._begin())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        """Work beside the screen; a fault that a person can mend becomes a line."""
        self.run_worker(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except GarraError as fault:
            await self._notice(fault.message, "bad")

    async def _begin(self) -> None:
        for text in self._opening.notices:
            await self._notice(text)
        await self._backend.open(self._heard, self._asked)
        self._link = self._link or Link("connected")
        self._agent = self._agent or await self._backend.default_agent()
        await self._go(self._talk.session_key or f"agent:{self._agent}:main", keep=self._opening.notices)
        if self._opening.model:
            await self._backend.set_model(self._talk.session_key, self._opening.model)
            await self._look()
        self._begun = True
        if self._opening.message:
            self._waiting.insert(0, (fresh(), self._opening.message))
        await self._catch_up()

    async def _go(self, session_key: str, keep: Sequence[str] = (), say: str = "") -> None:
        """Show a conversation from its history, and `say` something in it."""
        key, messages = await self._backend.history(session_key, self._opening.history)
        self._talk = Conversation(key)
        if key.startswith("agent:"):
            self._agent = key.split(":")[1]
        history = of_history(messages)
        kept: list[Item] = [Notice(f"opening:{n}", text) for n, text in enumerate(keep)]
        await self.query_one(Transcript).show([*history, *kept])
        await self._look()
        if say:
            await self._send(say)

    async def _look(self) -> None:
        """Ask how the session stands."""
        facts = await self._backend.facts(self._talk.session_key)
        self._facts = facts if facts.model else Facts(model=await self._backend.default_model(self._agent))
        self._tell()

    async def _notice(self, text: str, tone: Any = "quiet") -> None:
        self._notices += 1
        await self.query_one(Transcript).put([Notice(f"notice:{self._notices}", text, tone)])

    def _heard(self, news: Event | Link) -> None:
        self.post_message(News(news))

    async def _asked(self, question: str) -> bool:
        """Put a question on the screen and wait for yes or no."""
        answered: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def ask() -> None:
            choices = [Choice("no", "No"), Choice("yes", "Yes")]
            self.push_screen(Picker(question, choices), lambda value: answered.set_result(value == "yes"))

        self.call_later(ask)
        return await answered

    @on(News)
    async def _hear(self, message: News) -> None:
        news = message.news
        if isinstance(news, Link):
            await self._linked(news)
            return
        if news.name == NOTICE:
            await self._notice(str(news.payload.get("text", "")))
            return
        before = self._talk.busy
        transcript = self.query_one(Transcript)
        await transcript.put(self._talk.feed(news.name, news.payload, self._clock.now_ms()))
        if before is not None and before is not self._talk.busy:
            await transcript.settle()
            self._do(self._look())
        self._tell()

    async def _linked(self, link: Link) -> None:
        again = self._link is not None and self._link.state != "connected"
        self._link = link
        self._tell()
        if link.state == "connected":
            if again:
                self._do(self._back())
            return
        wait = f" Trying again in {link.wait_s:.0f} s." if link.wait_s else ""
        text = f"The gateway is away: {link.reason}.{wait} What you write now is sent when it is back."
        await self.query_one(Transcript).put([Notice("link", text, "warn")])

    async def _back(self) -> None:
        await self._backend.subscribe()
        await self._go(self._talk.session_key)
        await self._notice("Connected again.")
        await self._catch_up()

    async def _catch_up(self) -> None:
        """Send what was written while there was nobody to send it to."""
        waiting, self._waiting = self._waiting, []
        for run_id, text in waiting:
            await self.query_one(Transcript).put(self._talk.asked(run_id, text, self._clock.now_ms()))
            await self._deliver(run_id, text)

    async def _send(self, text: str) -> None:
        run_id = fresh()
        await self.query_one(Transcript).put(self._talk.asked(run_id, text, self._clock.now_ms()))
        self.query_one(Transcript).anchor()
        self._tell()
        if not self._begun or (self._link is not None and self._link.state != "connected"):
            self._waiting.append((run_id, text))
            return
        await self._deliver(run_id, text)

    async def _deliver(self, run_id: str, text: str) -> None:
        try:
            await self._backend.send(self._talk.session_key, text, run_id, self._thinking)
        except GarraError as fault:
            await self.query_one(Transcript).put(self._talk.refused(run_id, fault.message))
            self._tell()

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        self._leaving = False
        found = commands.parse(event.text)
        if found is None and (slip := commands.mistyped(event.text)):
            self._do(self._notice(slip, "warn"))
            return
        self._do(self._run(*found) if found else self._send(event.text))

    @on(TextArea.Changed)
    def _written(self, event: TextArea.Changed) -> None:
        shown = commands.fitting(event.text_area.text)
        hints = self.query_one("#hints", Static)
        hints.set_class(bool(shown), "shown")
        hints.update("\n".join(f"/{slash.name} {slash.takes}".ljust(28) + slash.about for slash in shown))

    async def _run(self, name: str, rest: str) -> None:
        """One of our own commands."""
        table = {
            "help": self._help,
            "new": self._new,
            "reset": self._reset,
            "sessions": self._sessions,
            "agents": self._agents,
            "models": self._models,
            "think": self._think,
            "reasoning": self._reasoning,
            "verbose": self._verbose,
            "stop": self._stop,
            "status": self._status,
            "theme": self._theme,
            "quit": self._quit,
        }
        await table[name](rest)

    async def _help(self, _rest: str) -> None:
        await self._notice(commands.help_text())

    async def _new(self, rest: str) -> None:
        await self._go(self._backend.new_session(self._agent), say=rest)

    async def _reset(self, rest: str) -> None:
        if rest.lower() == "undo":
            await self._send(f"/reset {rest}")
            return
        await self._backend.reset(self._talk.session_key)
        await self._go(self._talk.session_key, say=rest)

    async def _sessions(self, rest: str) -> None:
        await self._choose(
            "Conversations", await self._backend.sessions(self._agent), self._talk.session_key, said=rest, then=self._go
        )

    async def _agents(self, rest: str) -> None:
        async def go(agent_id: str) -> None:
            await self._go(f"agent:{agent_id}:main")

        await self._choose("Agents", await self._backend.agents(), self._agent, said=rest, then=go)

    async def _models(self, rest: str) -> None:
        async def choose(ref: str) -> None:
            await self._backend.set_model(self._talk.session_key, ref)
            await self._notice(f"From here on {ref} answers.")
            await self._look()

        await self._choose("Models", await self._backend.models(self._agent), self._facts.model, said=rest, then=choose)

    async def _think(self, rest: str) -> None:
        async def choose(level: str) -> None:
            await self._backend.set_thinking(self._talk.session_key, level)
            self._thinking = ""
            await self._notice(f"Thinking: {level}.")
            await self._look()

        levels = [Choice(level, level) for level in LEVELS]
        await self._choose("Thinking", levels, self._facts.thinking, said=rest, then=choose)

    async def _choose(self, title: str, choices: list[Choice], current: str, *, said: str, then: Any) -> None:
        """What was said, else what is picked from the list, goes to `then`; nothing when the list is left."""
        if said:
            await then(said)
            return

        def chosen(value: str | None) -> None:
            if value is not None:
                self._do(then(value))

        self.push_screen(Picker(title, choices, current), chosen)

    async def _reasoning(self, _rest: str) -> None:
        self.action_think_aloud()

    async def _verbose(self, rest: str) -> None:
        transcript = self.query_one(Transcript)
        shown = rest != "off" if rest else not transcript.has_class("outputs")
        transcript.set_class(shown, "outputs")
        await self._backend.set_verbose(self._talk.session_key, "full" if shown else "off")

    async def _stop(self, rest: str) -> None:
        if rest:
            await self._send(f"/stop {rest}")
        elif not await self._backend.abort(self._talk.session_key):
            await self._notice("Nothing goes on here.")

    async def _status(self, _rest: str) -> None:
        version = (await self._backend.status()).get("runtimeVersion", "?")
        await self._notice(
            standing.report(f"{self._backend.where}, version {version}", self._talk.session_key, self._facts)
        )

    async def _theme(self, rest: str) -> None:
        other = PAPER.name if self.theme == INK.name else INK.name
        self.theme = rest if rest in {INK.name, PAPER.name} else other

    async def _quit(self, _rest: str) -> None:
        self.action_leave()

    def action_run(self, name: str) -> None:
        self._do(self._run(name, ""))

    def action_stop(self) -> None:
        if self._talk.busy is not None:
            self._do(self._stop(""))

    def action_fold(self) -> None:
        self.query_one(Transcript).toggle_class("outputs")

    def action_think_aloud(self) -> None:
        self.query_one(Transcript).toggle_class("thinking")

    def action_scroll(self, pages: int) -> None:
        transcript = self.query_one(Transcript)
        (transcript.scroll_page_down if pages > 0 else transcript.scroll_page_up)(animate=False)

    def action_clear_or_leave(self) -> None:
        composer = self.query_one(Composer)
        if composer.text:
            composer.put("")
        elif self._leaving:
            self.action_leave()
        else:
            self._leaving = True
            self._tell()

    def action_leave(self) -> None:
        self.exit(0)

    async def on_unmount(self) -> None:
        await self._backend.close()

    def _tell(self) -> None:
        """Say how things stand."""
        title = self._facts.title or self._talk.session_key
        now = self._clock.now_ms()
        self.query_one("#head", Static).update(standing.head(title, self._backend.where))
        self.query_one("#facts", Static).update(standing.facts(self._link, self._agent, self._facts))
        self.query_one("#doing", Static).update(standing.doing(self._talk.busy, now, leaving=self._leaving))

    def _fatal_error(self) -> None:
        """A fault of ours: one line for the person; the log gets the rest, which may hold what nobody should read."""
        log.exception("the chat ended with a fault")
        more = f"`{self._opening.command} logs` tells more"
        self.panic(f"garra: the chat ended with a fault of its own; {more}. Nothing said was lost.")
