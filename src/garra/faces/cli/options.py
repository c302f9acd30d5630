"""Options that stand before the command and hold for all of them; they become variables that everything reads."""

from __future__ import annotations

from garra.io import env

LEVELS = ("trace", "debug", "info", "warn", "warning", "error")


class Misused(Exception):
    """The command line cannot be understood; the message says why. Exit code 2."""


def globals_of(arguments: list[str]) -> list[str]:
    """Take the leading global options off `arguments`, put them into force, and give the rest. Raises Misused."""
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest and rest[0].startswith("--"):
        name, equals, value = rest[0].partition("=")
        if name == "--no-color":
            found["NO_COLOR"] = "1"
        elif name == "--dev":
            found["PROFILE"] = "dev"
        elif name in {"--profile", "--state-dir", "--log-level"}:
            if not equals:
                rest = rest[1:]
                value = rest[0] if rest else ""
            found[name[2:].replace("-", "_").upper()] = _checked(name, value)
        else:
            break
        rest = rest[1:]
    _enforce(found)
    return rest


def _checked(name: str, value: str) -> str:
    if not value or value.startswith("--"):
        raise Misused(f"{name} needs a value")
    if name == "--log-level" and value not in LEVELS:
        raise Misused(f"--log-level is one of {', '.join(LEVELS)}; not {value}")
    if name == "--profile" and not all(letter.isalnum() or letter in "-_" for letter in value):
        raise Misused("a profile's name is letters, digits, - and _")
    return value


def _enforce(found: dict[str, str]) -> None:
    if not found:
        return
    compat = env.read().get("GARRA_COMPAT", "").strip().lower() == "openclaw"
    prefix = "OPENCLAW" if compat else "GARRA"
    env.export({name if name == "NO_COLOR" else f"{prefix}_{name}": value for name, value in found.items()})
