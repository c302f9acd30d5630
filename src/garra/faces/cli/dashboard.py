"""`garra dashboard`: the address of the web page, with what lets a browser in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from garra.client.target import Target
from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_target(
        parsing.with_json(
            parsing.parser("dashboard", "The address of the web page; opened once, it lets a browser in.")
        )
    )
    parser.add_argument("--no-open", action="store_true", help="taken for habit: the address is always only printed")
    asked = parser.parse_args(list(arguments))
    here = place.here()
    if here.agents:
        raise UserError("the address lets whoever opens it into the gateway, so an agent's command is not told it")
    target = here.target(parsing.wanted(asked))
    found = address(target, here.config)
    if asked.json:
        output.say_json(found)
        return 0
    output.say(found["url"])
    if here.holder is None and not asked.url:
        output.note("No gateway runs here yet: garra gateway run")
    elif found["tokenIncluded"]:
        output.note("It holds the gateway's secret: open it on this machine, and give it to nobody.")
    return 0


def address(target: Target, config: Mapping[str, Any]) -> dict[str, Any]:
    """The page's addresses. The secret stands behind `#`, where no server and no log is told it."""
    parts = urlsplit(target.url)
    base = "/".join(part for part in _base(config).split("/") if part)
    http = f"{'https' if parts.scheme == 'wss' else 'http'}://{parts.netloc}/{base + '/' if base else ''}"
    secret = target.token or target.password
    return {
        "url": f"{http}#token={quote(secret, safe='')}" if secret else http,
        "httpUrl": http,
        "wsUrl": target.url,
        "port": parts.port,
        "tokenIncluded": bool(secret),
    }


def _base(config: Mapping[str, Any]) -> str:
    gateway = config.get("gateway")
    settings = gateway.get("controlUi") if isinstance(gateway, Mapping) else None
    text = settings.get("basePath") if isinstance(settings, Mapping) else ""
    return text if isinstance(text, str) else ""
