"""Which model a text means: an alias, `provider/model`, a model's bare name, a provider, a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from garra.core import modelref
from garra.core.errors import NotFound
from garra.core.modelref import Ref
from garra.core.value import frozen
from garra.domains.models.catalog import Entry
from garra.sdk.provider import Provider

if TYPE_CHECKING:
    from garra.config.sections import Config


@frozen
class Names:
    """The names in force: the configuration's aliases, the providers, and the box's other names for them."""

    config: Config
    entries: Mapping[str, Entry]
    known: tuple[Provider, ...]

    def meant(self, text: str) -> Ref:
        """The provider and model that `text` means. Raises NotFound with a line on how to write it."""
        name = self._unaliased(text)
        if is_file(name):
            return Ref("local", name)
        ref = modelref.split(name)
        if ref.provider:
            return Ref(self.canonical(ref.provider), ref.model or self._default(ref.provider))
        holders = [provider for provider, entry in self.entries.items() if ref.model in entry.listed()]
        vendors = [name for name in holders if self.entries[name].configured or not self.entries[name].provider.carrier]
        holders = vendors or holders
        if len(holders) == 1:
            return Ref(holders[0], ref.model)
        if self.canonical(ref.model) in self.entries:
            return Ref(self.canonical(ref.model), self._default(ref.model))
        may = f"it may be {', '.join(f'{holder}/{ref.model}' for holder in holders)}"
        raise NotFound(
            f"no model {text!r}: write it as provider/model; {may if holders else 'see `garra models list`'}"
        )

    def canonical(self, provider: str) -> str:
        """A provider's id for any name of it; the name itself when nobody is called so."""
        name = provider.lower()
        if name in self.entries:
            return name
        return next((known.id for known in self.known if name in known.aliases), name)

    def entry(self, provider: str) -> Entry:
        """Raises NotFound."""
        found = self.entries.get(self.canonical(provider))
        if found is None:
            known = ", ".join(sorted(self.entries))
            raise NotFound(f"no provider {provider!r}; there are {known}. Add one under models.providers")
        return found

    def _unaliased(self, text: str) -> str:
        """The model that the owner gave this alias, else the text itself."""
        models = self.config.agents.defaults.models.items()
        wanted = text.strip().lower()
        return next((name for name, own in models if own.alias and own.alias.lower() == wanted), text)

    def _default(self, provider: str) -> str:
        entry = self.entry(provider)
        chosen = entry.provider.default or next(iter(entry.listed()), "")
        if not chosen:
            raise NotFound(f"provider {provider} has no default model: write {provider}/MODEL")
        return chosen


def is_file(name: str) -> bool:
    """Whether a model's name is the path of a GGUF file."""
    return name.endswith(".gguf") and name.startswith(("/", "~", "."))
