"""How a turn sounds in its chat: `domains.delivery` makes the messages, this ties a run to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from garra.config.sections import Config
from garra.config.sections.channels import account_rules
from garra.core.crowds import label
from garra.core.events import RunEnded, RunEvent
from garra.core.ids import RunId
from garra.core.value import frozen
from garra.domains.delivery import replies as shapes
from garra.domains.delivery.draft import Draft
from garra.domains.delivery.preview import Preview, Settled
from garra.domains.delivery.replies import Extra, Replies, Settings
from garra.domains.delivery.window import Stage
from garra.runs.run import Run
from garra.sdk.channel import Address, Limits
from garra.turns.parts import Asked, Runs

PLAIN: Final = Limits(text=4_000)
"""What is kept to where the platform's own limits are not known: its link was never made."""


class Chats:
    """As `parts.Voice`. `stage` gives what previews of an account work with, None while it has no link; `limits` what
    its platform takes. Secrets are blotted out of what a preview shows by its stage.
    """

    def __init__(
        self,
        config: Callable[[], Config],
        replies: Replies,
        runs: Runs,
        *,
        stage: Callable[[Address], Stage | None],
        limits: Callable[[Address], Limits | None],
    ) -> None:
        self._config, self._replies = config, replies
        self._stage, self._limits = stage, limits
        self._shown: dict[RunId, Preview] = {}
        self._end = runs.subscribe(self._heard)

    def close(self) -> None:
        """Hear of no run any more."""
        self._end()

    def watch(self, run: Run, asked: Asked) -> Shown:
        stage, settings = self._stage(asked.address), self._settings(asked, run.turn.agent_id)
        preview = None
        if stage is not None and run.ended is None and run.led_by is None:
            preview = Preview(stage, run.run_id, asked.address, settings, anchor=asked.reply_to)
            self._shown[run.run_id] = preview
            preview.start()
        return Shown(self, run.run_id, asked, settings, preview)

    def lines(self, address: Address) -> bool:
        return (self._limits(address) or PLAIN).lines

    def drafts(self, key: str, asked: Asked, text: str) -> Sequence[Draft]:
        return self.made(key, asked, self._settings(asked), Settled(text))

    def card(self, key: str, address: Address, text: str) -> Sequence[Draft]:
        """Words of the gateway's own as messages: nothing is taken out of them, whatever it looks like."""
        asked = Asked(address)
        return self.made(key, asked, replace(self._settings(asked), prefix=""), Settled(text), own=True)

    def made(self, key: str, asked: Asked, settings: Settings, settled: Settled, *, own: bool = False) -> list[Draft]:
        """The messages of what is left to say."""
        labelled = asked.label and settled.text.strip()
        return self._replies.drafts(
            key,
            asked.address,
            label(asked.label, settled.text) if labelled else settled.text,
            limits=self._limits(asked.address) or PLAIN,
            settings=settings,
            anchor=asked.reply_to,
            extra=Extra(window=settled.window, number=settled.number, own=own),
        )

    def gone(self, run_id: RunId) -> None:
        """Its run is answered."""
        self._shown.pop(run_id, None)

    def _heard(self, event: RunEvent) -> None:
        preview = self._shown.get(event.run_id)
        if preview is not None:
            preview.feed(event)
            if isinstance(event.body, RunEnded):
                self._shown.pop(event.run_id, None)

    def _settings(self, asked: Asked, agent: str = "") -> Settings:
        config, address = self._config(), asked.address
        rules: Mapping[str, Any] = account_rules(config.channels, address.channel, address.account)
        if asked.mode:
            rules = {**rules, "replyToMode": asked.mode}
        messages = config.messages.model_dump(by_alias=True, exclude_unset=True)
        limits = self._limits(address) or PLAIN
        human = config.agents.human_delay(agent) if agent else {}
        found = shapes.settings(rules, limits, address.kind, messages, human=human)
        if asked.label:
            return replace(found, progress=replace(found.progress, mode="off"), blocks=None, ack="", moods=False)
        return replace(found, progress=_verbose(found, asked.verbose)) if asked.verbose else found


def _verbose(settings: Settings, level: str) -> Any:
    """`/verbose off` shows no tools at work, `full` their commands too."""
    return replace(settings.progress, tools=level != "off", commands=level == "full" or settings.progress.commands)


@frozen
class Shown:
    """As `parts.Watched`."""

    chats: Chats
    run_id: RunId
    asked: Asked
    settings: Settings
    preview: Preview | None

    async def end(self, texts: Sequence[str]) -> Sequence[Draft]:
        self.chats.gone(self.run_id)
        if self.preview is not None and self.settings.blocks is not None:  # what was said before is out already
            settled = await self.preview.settle(texts[-1] if texts else "")
            return self._drafts(settled) if texts else ()
        settled = Settled("") if self.preview is None else await self.preview.settle(texts[0] if texts else "")
        drafts: list[Draft] = []
        for text in texts:
            window = settled.window if not drafts else ""
            drafts += self._drafts(Settled(text, window, len(drafts)))
        return drafts

    def finish(self, *, answered: bool) -> None:
        if self.preview is not None:
            self.preview.finish(answered=answered)

    def _drafts(self, settled: Settled) -> list[Draft]:
        return self.chats.made(self.run_id, self.asked, self.settings, settled)
