"""Gives each run what keeps its history within its model's window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import tzinfo
from typing import Any, Final

import msgspec

from garra.agent.cancel import Cancel
from garra.core.compaction import Measure, Steps, weight
from garra.core.errors import UserError
from garra.core.events import RunBody
from garra.core.messages import Message
from garra.core.taint import Marks
from garra.core.value import frozen
from garra.runs import flush
from garra.runs.asking import Asking, Said
from garra.runs.compaction import Case, Compactor, Gauge, Transcript
from garra.runs.run import Run
from garra.sdk.model import Model, ToolSpec
from garra.sdk.ports import Files
from garra.sdk.written import Rest

KEPT: Final = 64
"""For how many sets of tools their size is kept."""

SLICE: Final = 500
"""So many messages are measured before others have their turn."""


def _quiet(_run: Run, _body: RunBody) -> None:
    return None


@frozen
class Around:
    """What a run's history stands among. `files` gives the agent's folder, None where the run may not write there;
    `owned`: a context engine sees to the size. `marks` are those of what the run has read. `pruned` says how much of a
    history a model is sent in brief.
    """

    models: tuple[Model, ...]
    said: Said
    ask: Asking
    marks: Callable[[], Marks]
    files: Callable[[], Files] | None
    zone: tzinfo
    owned: bool = False
    pruned: Callable[[tuple[Message, ...], Model], Steps] = lambda messages, model: ()


class Fitting:
    """One for all runs. `emit` tells those who watch a run; it is set when the table of runs is there."""

    def __init__(self, compactor: Compactor) -> None:
        self.compactor = compactor
        self.emit: Callable[[Run, RunBody], None] = _quiet
        self._sizes: dict[tuple[str, ...], int] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, run: Run, transcript: Transcript, around: Around) -> Gauge:
        """What keeps the history of `run` within bounds."""
        said, model = around.said, around.models[0]
        specs = said.offered[model.ref]
        fixed = weight(said.system) + weight(said.tail) + self._size(specs)
        flushed = self._flush(run, transcript, around) if around.files and flush.TOOL in map(_name, specs) else None
        return self.compactor.gauge(
            Case(run, transcript, around.models, self.emit, fixed, flushed, around.owned, around.pruned),
        )

    async def look(self, transcript: Transcript, around: Around, rest: Rest) -> None:
        """Measure a history before its first request; not where somebody else sees to its size."""
        if around.owned:
            return
        messages = transcript.messages()
        found = self.compactor.measures.setdefault(transcript, Measure())
        steps = around.pruned(messages, around.models[0])
        await grown(found, messages, rest, since=transcript.since, steps=steps)

    def _flush(
        self, run: Run, transcript: Transcript, around: Around
    ) -> Callable[[Cancel, bool], Coroutine[Any, Any, None]]:
        ports, agent = self.compactor.ports, run.agent_id

        async def go(cancel: Cancel, last: bool) -> None:  # noqa: FBT001 - as it is called
            assert around.files is not None
            files = await asyncio.to_thread(around.files)
            lock = self._locks.setdefault(agent, asyncio.Lock())
            writer = self._writer(run, around.models[0])
            ground = flush.Ground(
                run, writer, transcript.messages, around.ask, files, ports.rows, ports.clock, around.zone, around.marks,
                lock,
            )  # fmt: skip
            await (flush.save if last else flush.flush)(ground, cancel)

        return go

    def _writer(self, run: Run, usual: Model) -> Model:
        """Who saves: the conversation's model, or the one that is set for it."""
        wanted = self.compactor.settings().memory_flush.model
        if not wanted:
            return usual
        try:
            return self.compactor.ports.models.resolve(wanted, run.agent_id)
        except UserError:
            return usual

    def _size(self, specs: tuple[ToolSpec, ...]) -> int:
        """Characters that tools take in a request."""
        names = tuple(map(_name, specs))
        size = self._sizes.get(names)
        if size is None:
            if len(self._sizes) >= KEPT:
                self._sizes.clear()
            size = sum(len(each.name) + weight(each.description) + _json(each) for each in specs)
            self._sizes[names] = size
        return size


async def grown(
    measure: Measure, messages: tuple[Message, ...], rest: Rest, *, since: int = 0, steps: Steps = ()
) -> None:
    """Measure a long history that is not known yet but for its last slice, with a `rest` behind each slice. There is
    one after a long history that is known, too: what follows walks over it.
    """
    for end in range(len(measure.sizes) + SLICE, len(messages), SLICE):
        measure.on(messages[:end], since, steps)
        await rest()
    if len(messages) > SLICE:
        await rest()


def _name(spec: ToolSpec) -> str:
    return spec.name


def _json(spec: ToolSpec) -> int:
    return len(msgspec.json.encode(dict(spec.parameters)))
