"""One run's calls to models: what each is told, before the history and behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from garra.core.compaction import Steps
from garra.core.failover import Attempt
from garra.core.messages import Message
from garra.core.spending import Payer
from garra.core.value import frozen
from garra.domains.models import mending
from garra.domains.models.call import Way
from garra.domains.models.registry import Models
from garra.runs.history import History
from garra.runs.run import Run
from garra.runs.view import View
from garra.sdk.model import EventStream, Level, Model, ModelRequest, ToolSpec
from garra.sdk.written import Rest, breath

Messages = tuple[Message, ...]


@frozen
class Said:
    """What all calls of a run are told: `system` first, `tail` last; `offered` are the tools by the model's ref.
    `profile` is the login that a person chose.
    """

    system: str
    tail: str
    offered: Mapping[str, tuple[ToolSpec, ...]]
    thinking: Level
    profile: str = ""


class Asking:
    """Starts the calls. `model` is the one that was asked last; `added` is said behind the tail."""

    def __init__(
        self,
        run: Run,
        models: Models,
        said: Said,
        history: History,
        *,
        view: View,
        payer: Payer | None,
        rest: Rest = breath,
    ) -> None:
        self._run, self._models, self._said = run, models, said
        self._history, self._view, self._payer, self._rest = history, view, payer, rest
        self.model: Model | None = None
        self.added = ""

    def __call__(self, model: Model, messages: Messages) -> EventStream:
        """Start one call with a history as it is stored. A model that is not the run's has the first one's tools."""
        self.model = model
        said, run = self._said, self._run
        request = ModelRequest(
            model,
            said.system,
            self._history.request(self._view.messages(messages, model), model),
            said.offered.get(model.ref) or next(iter(said.offered.values()), ()),
            tail="\n\n".join(filter(None, (said.tail, self.added))),
            thinking=said.thinking if model.reasoning else "off",
            session=run.session_id,
            payer=self._payer,
            rest=self._rest,
        )
        note = self._noting(model, messages)
        timed = run.trace.requests.append
        return self._models.stream(request, Way(note, run.trace.behind, run.agent_id, self._said.profile, timed))

    def pruned(self, messages: Messages, model: Model) -> Steps:
        """By how much `messages` are smaller when `model` is sent them (`core.compaction`)."""
        return self._view.steps(messages, model)

    def _noting(self, model: Model, messages: Messages) -> Callable[[Attempt], None]:
        """Hears of each attempt. Pictures that were only in the one that was refused are not sent again."""
        add, view, refused = self._run.trace.add, self._view, ""

        def note(attempt: Attempt) -> None:
            nonlocal refused
            add(attempt)
            if attempt.result != "success":
                refused = attempt.reason
            elif attempt.level == "operation" and refused and mending.pictures(refused):
                view.refused(messages, model)

        return note
