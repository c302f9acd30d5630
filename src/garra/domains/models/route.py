"""Where calls by a login go, where that is elsewhere than calls by a key: another address, family, headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from garra.core.profiles import Profile
from garra.core.value import frozen, replace
from garra.domains.models.catalog import Entry
from garra.sdk.model import Model, ModelRequest

METHOD: Final = "method"
"""Beside the secrets of a login: by which way it came."""


@frozen
class Route:
    """What is empty stays as the model has it; `{name}` in a header is what the login knows under that name."""

    family: str = ""
    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    compat: Mapping[str, Any] = field(default_factory=dict)


def parsed(body: object) -> Route | None:
    """A route as data has it."""
    if not isinstance(body, Mapping):
        return None
    headers = {str(name): str(value) for name, value in dict(body.get("headers", {})).items()}
    return Route(str(body.get("family", "")), str(body.get("base_url", "")), headers, dict(body.get("compat", {})))


def routed(request: ModelRequest, profile: Profile, entry: Entry) -> ModelRequest:
    """The request as it goes by this login, under the name that the server behind a router has for the model."""
    upstream = request.model.compat.get("upstreamModel")
    if isinstance(upstream, str):
        request = replace(request, model=replace(request.model, id=upstream))
    if profile.kind != "oauth" or not entry.provider.logins:
        return request
    name = profile.extra.get(METHOD)
    ways = [
        each for each in entry.provider.logins if each.get("kind") == "oauth" and name in (None, "", each.get("id"))
    ]
    route = parsed(ways[0].get("route")) if ways else None
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
