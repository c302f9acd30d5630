"""How things stand, in one line: the link, who answers, how much was used, and what goes on."""

from __future__ import annotations

from textual.content import Content

from garra.client.wire import Link
from garra.faces.tui.conversation import Running
from garra.faces.tui.items import Facts, duration


def head(title: str, where: str) -> Content:
    """One line; where the agent lives comes first, so that a long title is what is cut."""
    return Content.assemble(("Garra", "bold $foreground"), "  ", where, "  ", title)


def facts(link: Link | None, agent: str, known: Facts) -> Content:
    """Connection, agent, model, thinking, tokens; what is not known is left out."""
    if link is None:
        parts = [Content("connecting …")]
    elif link.state == "connected":
        parts = [Content("connected")]
    else:
        parts = [Content.styled("not connected", "$warning")]
    parts += [Content(part) for part in (agent, known.model, known.thinking) if part and part != "off"]
    if known.tokens:
        window = f" of {known.window:,}" if known.window else ""
        parts.append(Content(f"{known.tokens:,}{window} tokens"))
    return Content("  ").join(parts)


def report(where: str, session_key: str, known: Facts) -> str:
    """What `/status` says."""
    return "\n".join(
        (
            where,
            f"session {session_key}",
            f"model {known.model or 'none'}, thinking {known.thinking or 'as the model does'}",
            f"{known.tokens:,} tokens" + (f" of {known.window:,}" if known.window else ""),
        )
    )


def doing(run: Running | None, now_ms: int, *, leaving: bool) -> Content:
    """What goes on and how it is stopped; else where to look for help."""
    if run is not None:
        return Content.assemble((f"{run.doing} {duration(now_ms - run.began)}", "$accent"), "  Esc stops")
    return Content("ctrl+c again leaves" if leaving else "/help")
