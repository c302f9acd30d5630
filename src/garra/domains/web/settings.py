"""`tools.web` as tools take it: how pages are fetched, who searches, which hosts are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any, Final

from garra.config.sections import Config
from garra.config.sections.web import SsrfPolicy
from garra.core.hosts import Hosts
from garra.core.patterns import later
from garra.core.policy import Layer
from garra.core.secret import Secret
from garra.core.value import frozen, replace
from garra.sdk.searcher import Searcher, parse
from garra.sdk.web import Fetching, Searching

_NAME = later(r"^[a-z0-9!#$%&'*+.^_`|~-]{1,100}$")
_RESERVED: Final = frozenset(
    {"accept", "accept-language", "accept-encoding", "user-agent", "host", "connection", "content-length",
     "transfer-encoding", "upgrade", "te", "trailer", "keep-alive", "proxy-authorization", "expect"}
)  # fmt: skip


@frozen
class Keyed:
    """One who can be asked, with its key."""

    searcher: Searcher
    key: Secret | None = None


def shipped() -> tuple[Searcher, ...]:
    """Who can search, of the box. Blocks: reads files."""
    folder = resources.files("garra") / "builtin" / "search"
    texts = ((item.name, item.read_text("utf-8")) for item in folder.iterdir() if item.name.endswith(".toml"))
    return tuple(sorted((parse(text, name) for name, text in texts), key=lambda searcher: searcher.order))


def hosts(policy: SsrfPolicy) -> Hosts:
    return Hosts(policy.allowed_hostnames, policy.blocked_hostnames, policy.dangerously_allow_private_network)


def fetching(config: Config) -> Fetching:
    told = config.tools.web.fetch
    return Fetching(
        told.max_chars,
        told.max_chars_cap,
        told.max_response_bytes,
        told.timeout_seconds,
        told.cache_ttl_minutes * 60,
        told.max_redirects,
        told.readability,
        told.user_agent,
    )


def added(config: Config) -> dict[str, str]:
    """`tools.web.fetch.headers`, without names and values that a request cannot carry or that are the tool's own."""
    told = {name.lower(): secret.reveal() for name, secret in config.tools.web.fetch.headers.items() if secret}
    return {name: text for name, text in told.items() if name not in _RESERVED and _NAME.match(name) and _fits(text)}


def _fits(text: str) -> bool:
    return not any(ord(letter) < 32 or 126 < ord(letter) < 160 or ord(letter) > 255 for letter in text)


def searching(config: Config, env: Mapping[str, str], known: Iterable[Searcher]) -> Searching:
    """Who is asked: the one the owner named, else the first that has what it needs. One without a key is only asked
    where it is named, or where its owner gave it an address.
    """
    told, able = config.tools.web.search, list(keyed(config, env, known))
    named = told.provider.strip().lower()
    if named:
        fit = [each.searcher for each in able if each.searcher.id == named]
    else:
        fit = [each.searcher for each in able if each.key or (each.searcher.keyless and each.searcher.base_env)]
    return Searching(
        fit[0] if fit else None,
        tuple(fit[1:]),
        bool(named),
        tuple(searcher.id for searcher in known),
        told.max_results,
        told.timeout_seconds,
        told.cache_ttl_minutes * 60,
    )


def keyed(config: Config, env: Mapping[str, str], known: Iterable[Searcher]) -> Iterator[Keyed]:
    """Those that could be asked, with their keys."""
    for searcher in known:
        own = _own(config, searcher.id)
        url = str(own.get("baseUrl") or env.get(searcher.base_env or "-") or searcher.url)
        key = None if searcher.keyless else _key(config, own, searcher, env)
        if url.startswith(("http://", "https://")) and (key or searcher.keyless):
            yield Keyed(replace(searcher, url=url.rstrip("/")), key)


def _own(config: Config, name: str) -> Mapping[str, Any]:
    entry = config.plugins.entries.get(name)
    own = entry.config.get("webSearch") if entry is not None else None
    return own if isinstance(own, Mapping) else {}


def _key(config: Config, own: Mapping[str, Any], searcher: Searcher, env: Mapping[str, str]) -> Secret | None:
    told = config.tools.web.search
    if isinstance(text := own.get("apiKey"), str) and text:
        return Secret(text)
    if told.api_key and told.provider.strip().lower() in ("", searcher.id) and searcher.order < 100:
        return told.api_key
    return next((Secret(env[name]) for name in searcher.env if env.get(name)), None)


def switches(config: Config, env: Mapping[str, str], known: Iterable[Searcher]) -> tuple[Layer, ...]:
    """What is not offered because it is switched off, or has nobody to ask: a layer for each."""
    web = config.tools.web
    keys = {
        "web_fetch": ("tools.web.fetch.enabled", web.fetch.enabled),
        "web_search": ("tools.web.search.enabled", web.search.enabled),
        "browser": ("browser.enabled", config.browser.enabled),
    }
    off = tuple(
        Layer(f"{key} is false", None, (name,), remedy=f"To switch it on: garra config set {key} true")
        for name, (key, is_on) in keys.items()
        if not is_on
    )
    if not web.search.enabled or (found := searching(config, env, tuple(known))).chosen is not None:
        return off
    return (*off, _nobody(web.search.provider.strip(), found.known))


def _nobody(named: str, known: tuple[str, ...]) -> Layer:
    """The layer that leaves web_search out where there is nobody to ask."""
    if named.lower() in known:
        source, remedy = f"tools.web.search.provider is {named}, which has no key or address here", "Give it one."
    elif named:
        source = f"tools.web.search.provider is {named!r}, and no searcher is called that"
        remedy = f"Those there are: {', '.join(known)}."
    else:
        source = "it has nobody to ask"
        remedy = f"Choose one: garra config set tools.web.search.provider NAME ({', '.join(known)})."
    return Layer(source, None, ("web_search",), remedy=remedy)
