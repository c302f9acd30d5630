"""Whether a From is who it says: by what the receiving server found, and by nothing else. Pure (RFC 8601).

Anybody can write any From, and any header that a server would write. The receiving server puts its own findings on top
and, as the RFC has it, takes away those that claim to be its own; so only the topmost header counts, and only when it
bears the name that the owner says the server uses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_COMMENT = re.compile(r"\((?:[^()\\]|\\.)*\)")
_RESULT = re.compile(r"^([a-z0-9-]+)(?:/\d+)?\s*=\s*([a-z]+)\b(.*)$", re.IGNORECASE | re.DOTALL)
_PROPERTY = re.compile(r'\b([a-z-]+)\s*\.\s*([a-z-]+)\s*=\s*("[^"]*"|[^\s;]+)', re.IGNORECASE)
_PARTS = re.compile(r'((?:[^;"]|"[^"]*")*)(?:;|$)')


def proven(domain: str, results: Sequence[str], receivers: Sequence[str]) -> str:
    """Empty when the sender's `domain` is proven; otherwise why it is not. `results` are all such headers, in order."""
    if not receivers:
        return "authservId is not set, so no server's word is taken"
    if not results:
        return "the receiving server wrote no Authentication-Results"
    name, findings = _read(results[0])
    if name not in receivers:
        return f"the topmost Authentication-Results is of {name[:80] or 'nobody'}"
    if any(_shows(method, value, found, domain.lower()) for method, value, found in findings):
        return ""
    return "neither DMARC nor an aligned DKIM signature passed"


def _read(header: str) -> tuple[str, list[tuple[str, str, dict[str, str]]]]:
    """The server's name, and each method with its result and properties."""
    text = " ".join(header.split())
    while (bare := _COMMENT.sub(" ", text)) != text:
        text = bare
    first, *parts = [part.strip() for part in _PARTS.findall(text)]
    found = []
    for part in parts:
        if match := _RESULT.match(part):
            told = _PROPERTY.findall(match[3])
            named = {f"{kind}.{name}".lower(): value.strip('"').lower().rstrip(".") for kind, name, value in told}
            found.append((match[1].lower(), match[2].lower(), named))
    return first.split(" ")[0].strip('"').lower(), found


def _shows(method: str, result: str, named: dict[str, str], domain: str) -> bool:
    if result != "pass":
        return False
    if method == "dmarc":
        return _bare(named.get("header.from", "")) == domain
    if method == "dkim":
        signer = _bare(named.get("header.d") or named.get("header.i", ""))
        return "." in signer and (domain == signer or domain.endswith(f".{signer}"))
    return False


def _bare(value: str) -> str:
    return value.rpartition("@")[2]
