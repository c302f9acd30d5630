"""The ways to log in at a provider, as its file and the configuration give them.

    [[login]]
    id = "oauth"
    kind = "oauth"                     # or "api_key", "token"
    name = "ChatGPT account"
    client_id = "…"
    token_url = "https://…"
    [login.route]                      # where calls by such a login go, where that is elsewhere
    family = "openai-responses"
    base_url = "https://…"
    headers = { account = "{accountId}" }

`models.providers.<id>.logins.<login>` in the configuration sets the same keys anew, for an issuer of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final

from garra.core import oauth
from garra.core.errors import NotFound, UserError
from garra.core.oauth import Issuer
from garra.core.profiles import Kind, Profile
from garra.core.value import frozen
from garra.domains.models.catalog import Entry
from garra.domains.models.refresh import ISSUER, METHOD
from garra.sdk.model import Model, ModelRequest

KEY: Final = "api-key"


@frozen
class Route:
    """Where calls by a login go. What is empty stays as the model has it; `{name}` in a header is what the login knows
    under that name.
    """

    family: str = ""
    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    compat: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Way:
    """One way to log in. `hint` says where such a secret is had, `prefix` how it begins; `issuer` is for oauth alone;
    `days` is how long a token lives.
    """

    id: str
    kind: Kind
    name: str
    hint: str = ""
    prefix: str = ""
    days: int = 0
    issuer: Issuer | None = None
    route: Route | None = None


def ways(entry: Entry) -> tuple[Way, ...]:
    """All of them, the usual one first. Raises UserError for data that cannot be read."""
    provider = entry.provider
    told = tuple(_way(login, f"login {provider.id}/{login.get('id')}") for login in provider.logins)
    if provider.auth == "none" or any(way.id == KEY for way in told):
        return told
    return (*told, Way(KEY, "api_key", "API key"))


def way(entry: Entry, name: str = "", kind: Kind | None = None) -> Way:
    """The way that is called `name`; else the first, of that kind where one is wanted. Raises NotFound."""
    listed = ways(entry)
    found = [each for each in listed if (not name or each.id == name) and kind in (None, each.kind)]
    if not found:
        what = f"no login {name!r}" if name else f"no login of the kind {kind}"
        there = ", ".join(each.id for each in listed) or "none"
        raise NotFound(f"{entry.provider.id} has {what}; there are: {there}")
    return found[0]


def issuer(entry: Entry, profile: Profile) -> Issuer:
    """Who gave a login. Raises NotFound."""
    name = str(profile.extra.get(METHOD) or "")
    found = [each for each in ways(entry) if each.issuer and name in ("", each.id)]
    if not found or found[0].issuer is None:
        raise NotFound(f"no login of {entry.provider.id} is known that could renew it")
    return found[0].issuer


def marked(profile: Profile, way: Way) -> Profile:
    """The login with what it has to remember of the way it came by."""
    origin = {ISSUER: way.issuer.origin} if way.issuer else {}
    return replace(profile, extra={**profile.extra, METHOD: way.id, **origin})


def routed(request: ModelRequest, profile: Profile, entry: Entry) -> ModelRequest:
    """The request as it goes by this login."""
    if profile.kind != "oauth" or not entry.provider.logins:
        return request
    name = profile.extra.get(METHOD)
    raw = [each for each in entry.provider.logins if each.get("kind") == "oauth" and name in (None, "", each.get("id"))]
    route = _route(raw[0].get("route")) if raw else None
    return request if route is None else replace(request, model=_turned(request.model, route, profile))


def _turned(model: Model, route: Route, profile: Profile) -> Model:
    known = {name: str(value) for name, value in profile.extra.items() if isinstance(value, str | int)}
    headers = {name: _filled(text, known) for name, text in route.headers.items()}
    return replace(
        model,
        api=route.family or model.api,
        base_url=route.base_url or model.base_url,
        headers={**model.headers, **{name: text for name, text in headers.items() if text}},
        compat={**model.compat, **route.compat},
    )


def _filled(text: str, known: Mapping[str, str]) -> str:
    """A header with what the login knows; empty where it does not."""
    if not (text.startswith("{") and text.endswith("}")):
        return text
    return known.get(text[1:-1], "")


def _way(body: Mapping[str, Any], where: str) -> Way:
    kind: Kind
    match body.get("kind"):
        case "oauth":
            kind = "oauth"
        case "token":
            kind = "token"
        case "api_key":
            kind = "api_key"
        case other:
            raise UserError(f"{where}: kind {other!r} is none of oauth, token, api_key")
    return Way(
        str(body.get("id", kind)),
        kind,
        str(body.get("name") or body.get("id") or kind),
        str(body.get("hint", "")),
        str(body.get("prefix", "")),
        int(body.get("days", 0)),
        oauth.issuer(body, where) if kind == "oauth" else None,
        _route(body.get("route")),
    )


def _route(body: object) -> Route | None:
    if not isinstance(body, Mapping):
        return None
    headers = {str(name): str(value) for name, value in dict(body.get("headers", {})).items()}
    return Route(str(body.get("family", "")), str(body.get("base_url", "")), headers, dict(body.get("compat", {})))
