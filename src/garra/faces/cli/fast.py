"""What is answered without loading anything: `--version`, and bare `--help` while no plugin can have a say in it."""

from __future__ import annotations

from collections.abc import Mapping

DISABLED = "GARRA_DISABLE_FAST_PATH"
VERSION = ("--version", "-V")
HELP = ("--help", "-h")


def answer(flag: str, env: Mapping[str, str]) -> str | None:
    """The whole answer to this one flag, or None when the slow way has to be taken."""
    if env.get(DISABLED, "") not in {"", "0"}:
        return None
    if flag in VERSION:
        from garra.faces.cli.version import line  # noqa: PLC0415 - the launcher imports what the flag needs

        return f"{line()}\n"
    if flag in HELP and not extended(env):
        from garra.faces.cli.table import overview  # noqa: PLC0415 - likewise

        return overview()
    return None


def extended(env: Mapping[str, str]) -> bool:
    """Whether the configuration's text names plugins or other files: either may bring commands of its own."""
    from garra.config.paths import resolve  # noqa: PLC0415 - likewise

    try:
        text = resolve(env).config_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return "plugins" in text or "$include" in text
