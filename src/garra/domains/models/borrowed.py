"""Logins of other programs on this machine. They are read, never written: whoever has two programs renew one login
loses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from garra.core.profiles import OWNER, Profile
from garra.core.secret import Secret

CLAUDE_ID: Final = "anthropic:claude-cli"
MOST_BYTES: Final = 1 << 20


def found(env: Mapping[str, str]) -> tuple[Profile, ...]:
    """Those that are there now. Blocks: reads files."""
    claude = _claude(env)
    return () if claude is None else (claude,)


def again(profile: Profile, env: Mapping[str, str]) -> Profile | None:
    """A borrowed login as it stands now, None where it is gone. Blocks."""
    return next((each for each in found(env) if each.id == profile.id), None)


def _claude(env: Mapping[str, str]) -> Profile | None:
    """The login of Claude's own command line; without its refresh token, which is not ours to use."""
    home = env.get("CLAUDE_CONFIG_DIR") or (f"{env['HOME']}/.claude" if env.get("HOME") else "")
    if not home:
        return None
    path = Path(home) / ".credentials.json"
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        body = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    login = body.get("claudeAiOauth") if isinstance(body, dict) else None
    if not isinstance(login, dict):
        return None
    access = login.get("accessToken")
    if not isinstance(access, str) or not access.strip():
        return None
    ends = login.get("expiresAt")
    moment = int(ends) if isinstance(ends, int | float) and not isinstance(ends, bool) else None
    extra = {OWNER: "claude", "plan": str(login.get("subscriptionType") or "")}
    return Profile(CLAUDE_ID, "anthropic", "oauth", Secret(access.strip()), expires_ms=moment, extra=extra)
