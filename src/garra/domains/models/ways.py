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
from dataclasses import replace
from typing import Any, Final

from garra.core import oauth
from garra.core.errors import NotFound, UserError
from garra.core.oauth import Issuer
from garra.core.profiles import Kind, Profile
from garra.core.value import frozen
from garra.domains.models import route
from garra.domains.models.catalog import Entry
from garra.domains.models.refresh import ISSUER
from garra.domains.models.route import METHOD, Route

KEY: Final = "api-key"


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


def known(entries: Mapping[str, Entry], provider: str) -> Entry:
    """Raises NotFound."""
    if provider not in entries:
        raise NotFound(f"there is no provider {provider} any more")
    return entries[provider]


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
        route.parsed(body.get("route")),
    )
