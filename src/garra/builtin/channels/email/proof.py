"""Whether a From is who it says: by what the receiving server found, and by nothing else. Pure (RFC 8601).

Anybody can write any From, and any header that a server would write. The receiving server puts its own findings on top
and, as the RFC has it, takes away those that claim to be its own; so only the topmost header counts, and only when it
bears the name that the owner says the server uses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from garra.core.value import frozen

HEAD_CHARS = 8_000
"""No server writes more of what it found."""
_TOKEN = re.compile(r"""[^()\\";]+|\\.|[()\\";]""", re.DOTALL)
_RESULT = re.compile(r"([a-z0-9-]+)(?:/1)?\s*=\s*([a-z]+)(?=\s|$)(.*)", re.IGNORECASE | re.DOTALL)
_PROPERTY = re.compile(
    r"(reason|(?:[a-z0-9-]+\s*\.\s*[a-z0-9_-]+))\s*=\s*(\"[^\"]*\"(?:@\S+)?|[^\s\"]+)(?=\s|$)", re.IGNORECASE
)
_UNDECIDED = frozenset({"pass", "none", "temperror", "permerror"})
"""What DMARC may have found beside a signature that stands for itself; all else speaks against the sender."""


@frozen
class Finding:
    """One method's result with its properties; `clear` is false where it says a thing twice."""

    method: str
    result: str
    told: Mapping[str, str]
    clear: bool


def proven(domain: str, results: Sequence[str], receivers: Sequence[str]) -> str:
    """Empty when the sender's `domain` is proven; otherwise why it is not. `results` are all such headers, in order."""
    if not receivers:
        return "authservId is not set, so no server's word is taken"
    if not results:
        return "the receiving server wrote no Authentication-Results"
    name, findings = _read(results[0])
    if name not in receivers:
        return f"the topmost Authentication-Results is of {name[:80] or 'nobody'}"
    if findings is None:
        return "the topmost Authentication-Results cannot be read for certain"
    judged = {found.result for found in findings if found.method == "dmarc"}
    if len(judged) > 1 or not judged <= _UNDECIDED:
        return "DMARC did not pass"
    if any(_shows(found, domain.lower()) for found in findings):
        return ""
    return "neither DMARC nor an aligned DKIM signature passed"


def _read(header: str) -> tuple[str, list[Finding] | None]:
    """The server's name, and what it found; None where it says so in a way that can be read in two."""
    parts = _parts(header) if len(header) <= HEAD_CHARS else None
    if not parts:
        return "", None
    name, *version = parts[0].split()[:3] or [""]
    found = [_finding(part) for part in parts[1:] if part]
    sure = [one for one in found if one is not None]
    return name.strip('"').lower(), sure if version in ([], ["1"]) and len(sure) == len(found) else None


def _parts(text: str) -> list[str] | None:
    """What semicolons part, without comments; None where a quote or a comment does not end, or ends twice."""
    kept, depth, quoted = [""], 0, False
    for token in _TOKEN.findall(text):
        if depth or (token in "()" and not quoted):
            depth += (token == "(") - (token == ")")
            token = "" if depth else " "
        elif token == '"':
            quoted = not quoted
        elif token == ";" and not quoted:
            kept.append("")
            continue
        if depth < 0:
            return None
        kept[-1] += token
    return None if depth or quoted else [part.strip() for part in kept]


def _finding(part: str) -> Finding | None:
    """One result; None for what may be one that counts, and cannot be read."""
    match = _RESULT.fullmatch(part)
    if match is None:
        return None if part.lower().startswith(("dmarc", "dkim")) else Finding("none", "", {}, clear=True)
    told: dict[str, str] = {}
    clear = True
    for key, value in _PROPERTY.findall(match[3]):
        name = "".join(key.split()).lower()
        clear = clear and name not in told
        told[name] = value.strip('"').lower().rstrip(".")
    return Finding(match[1].lower(), match[2].lower(), told, clear)


def _shows(found: Finding, domain: str) -> bool:
    if found.result != "pass" or not found.clear:
        return False
    told = found.told
    if found.method == "dmarc":
        return _bare(told.get("header.from", "")) == domain
    if found.method == "dkim":
        signer, named = _bare(told.get("header.d", "")), _bare(told.get("header.i", ""))
        if signer and named and not _within(named, signer):
            return False
        signer = signer or named
        return "." in signer and _within(domain, signer)
    return False


def _within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")


def _bare(value: str) -> str:
    return value.rpartition("@")[2]
