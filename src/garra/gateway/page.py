"""What every page of the gateway's port is sent with, and an honest word for a gateway without the web page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HEADERS: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Garra</title>
<style>body{font:16px/1.6 system-ui,sans-serif;max-width:38rem;margin:12vh auto;padding:0 1.5rem}
code{background:#8882;padding:.1em .35em;border-radius:.3em}</style>
<h1>Garra is running</h1>
<p>This is the gateway, version VERSION. Its web page is switched off or was not installed. Talk to it
from a terminal:</p>
<p><code>garra chat</code> opens a conversation, <code>garra status</code> shows how it is.</p>
"""


def html(version: str) -> str:
    return _PAGE.replace("VERSION", version)
