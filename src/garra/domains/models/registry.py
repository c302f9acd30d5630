"""The models: which there are, which one is meant, and a call to one, with its key, its second try and its price."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from garra.core.errors import Failure, FailureKind, GarraError, NotFound
from garra.core.failover import State
from garra.core.messages import Assistant
from garra.core.thinking import levels
from garra.core.value import frozen, replace
from garra.domains.models import catalog, keys, params
from garra.domains.models.audio import Listening
from garra.domains.models.call import PLAIN, Call, Ports, Way
from garra.domains.models.catalog import Entry
from garra.domains.models.names import Names
from garra.domains.models.profiles import Asked, Profiles
from garra.sdk.model import EventStream, Model, ModelRequest, Warms
from garra.sdk.ports import Clock
from garra.sdk.provider import Provider
from garra.sdk.stream import Stream

if TYPE_CHECKING:
    from garra.config.sections import Config


@frozen
class Row:
    """One model as it is listed: `available` when there is a key for it, `configured` when the owner named it."""

    id: str
    provider: str
    name: str
    reasoning: bool
    context_window: int
    input: tuple[str, ...]
    available: bool
    configured: bool
    alias: str = ""

    @property
    def ref(self) -> str:
        return f"{self.provider}/{self.id}"

    @property
    def thinking_levels(self) -> tuple[str, ...]:
        return levels(reasoning=self.reasoning)


class Models:
    """The registry. `config` gives the configuration in force; it is asked each time, so a change counts at once."""

    def __init__(self, config: Callable[[], Config], ports: Ports, known: tuple[Provider, ...]) -> None:
        self._config = config
        self._ports = ports
        self._known = known
        self.profiles = Profiles(
            config, ports.clock, ports.spawn, logins=ports.logins, fresh=ports.fresh, learn=ports.learn
        )
        self._entries: tuple[Config, dict[str, Entry]] | None = None
        self._windows: dict[str, int] = {}
        self._told: catalog.Found = {}
        self.installed: frozenset[str] = frozenset()
        """Which of the catalog's local models are on this machine."""
        self.picked = ""
        """The model that the first run found where none is configured, as `provider/model`."""

    @property
    def clock(self) -> Clock:
        return self._ports.clock

    def env(self) -> Mapping[str, str]:
        """The environment that keys are looked for in."""
        return self._ports.env()

    def entries(self) -> dict[str, Entry]:
        """The providers in force, by id."""
        config = self._config()
        if self._entries is None or self._entries[0] is not config:
            self._entries = (config, catalog.entries(config, self._known, self._told))
        return self._entries[1]

    def know(self, known: tuple[Provider, ...]) -> None:
        """Other providers are in the box from now on: a plugin that brings one was switched on or off."""
        self._known, self._entries = known, None

    def found(self, told: catalog.Found) -> None:
        """What the servers of providers said of their models."""
        self._told, self._entries = told, None

    def provider(self, name: str) -> str:
        """The id of the provider that `name` means, which may be another name of it. Raises NotFound."""
        return self._entry(name).provider.id

    def primary(self, agent_id: str = "") -> str:
        """What the configuration chose for this agent, as it is written there; empty when nothing is."""
        agents = self._config().agents
        agent = agents.find(agent_id) if agent_id else None
        own = agent.model.primary if agent is not None and agent.model is not None else ""
        return own or agents.defaults.model.primary

    def resolve(self, ref: str | None = None, agent_id: str = "") -> Model:
        """The model that is meant by `provider/model`, an alias or a bare model id; None: the agent's own.

        Raises NotFound with a line on what to set.
        """
        text = ref or self.primary(agent_id) or self.picked
        if not text:
            raise NotFound(
                "no model is set: set a provider's key, or choose one with `garra models set PROVIDER/MODEL`"
            )
        provider, model_id = self._names().meant(text)
        model = self._model(self._entry(provider), model_id)
        if not model.base_url and model.api != "local":
            raise NotFound(f"provider {provider} has no address: set models.providers.{provider}.baseUrl")
        return params.tuned(model, self._config().agents, agent_id)

    def _model(self, entry: Entry, model_id: str) -> Model:
        """The model with what its server told of it."""
        model = entry.model(model_id)
        window = self._windows.get(model.ref)
        told = entry.rows.get(model_id)
        if window is None or (told is not None and "context_window" in told.model_fields_set):
            return model
        return replace(model, context_window=window, prompt="lite" if window < catalog.SMALL_WINDOW else "full")

    def learn(self, ref: str, window: int) -> None:
        """A server said how large a model's window is, in tokens; the owner's own figure stays above that."""
        self._windows[ref] = window

    def rows(self) -> list[Row]:
        """Every model that is known, the owner's first."""
        aliases = {name: setting.alias for name, setting in self._config().agents.defaults.models.items()}
        env = self._ports.env()
        listed = []
        for name, entry in self.entries().items():
            keyed = keys.has(entry, env) and (entry.provider.auth == "key" or entry.configured)
            keyed = keyed or self.profiles.has(name)
            for model_id in entry.listed():
                model = self._model(entry, model_id)
                available = keyed or (name == "local" and model_id in self.installed)
                listed.append(_row(model, entry, aliases.get(model.ref, ""), available=available))
        return listed

    async def key(self, provider: str) -> str | None:
        """The secret for one call, None where none is needed. Raises RunFailed (missing_key)."""
        return (await self.profiles.credential(Asked(self._entry(provider), "", self._ports.env()))).secret

    def listening(self) -> Listening:
        """Who turns recordings into words."""
        return Listening(self._names(), self._ports.env(), self.primary() or self.picked, self.profiles.key)

    async def warm(self, agent_id: str = "") -> None:
        """Prepare the family of the agent's model, so that its first call need not wait; best run in the background.

        What cannot be prepared is left for that call to say.
        """
        with suppress(GarraError):
            api = await asyncio.to_thread(self._ports.apis, self.resolve(None, agent_id).api)
            if isinstance(api, Warms):
                await api.warm()

    def stream(self, request: ModelRequest, way: Way = PLAIN) -> EventStream:
        """Start a call. One that fails is made again where that may help, and by the provider's other logins; behind
        what was shown already the next goes on.

        Raises ValueError when the family found under `request.model.api` is another one.
        """
        model = request.model
        stream = Stream(Assistant((), self._ports.clock.now_ms(), model.api, model.provider, model.id))
        try:
            api = self._ports.apis(model.api)
        except GarraError as error:
            line = f"{model.ref}: the model family {model.api} cannot be used: {error.message}"
            stream.fail(Failure(FailureKind.NOT_FOUND, line, provider=model.provider, model=model.id))
            return stream
        if api.family != model.api:
            raise ValueError(f"{model.ref} speaks {model.api}, but the family found there is {api.family}")
        entry, cap = self._entry_of(model.provider), self._config().auth.cooldowns
        state = State(models=way.behind, cap=cap.rate_limited_profile_rotations)
        call = Call(api, self._ports, self.profiles, entry=entry, stream=stream, way=way, state=state)
        stream.start(self._ports.spawn, lambda: call.run(params.warmed(request)), f"call {model.ref}")
        return stream

    def resting(self, model: Model, agent: str = "") -> bool:
        """Whether every login for a model rests, so that another is better asked first."""
        return self.profiles.resting(self._entry_of(model.provider), model.id, self._ports.env(), agent)

    def _names(self) -> Names:
        return Names(self._config(), self.entries(), self._known)

    def _entry_of(self, provider: str) -> Entry:
        """The provider of a model that was found; one that is gone since needs no key."""
        return self.entries().get(provider) or Entry(Provider(provider, provider, "", auth="none"))

    def _entry(self, provider: str) -> Entry:
        return self._names().entry(provider)


def _row(model: Model, entry: Entry, alias: str, *, available: bool) -> Row:
    return Row(
        model.id,
        model.provider,
        model.name,
        model.reasoning,
        model.context_window,
        model.input,
        available,
        entry.configured,
        alias,
    )
