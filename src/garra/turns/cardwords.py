"""A question in the words of a chat, and what became of it."""

from __future__ import annotations

from typing import Final

from garra.core.approvals import CHOICES, Answer, Approval, Choice, Question, doing, said, short
from garra.core.render import escaped, ticked
from garra.core.showing import measured, shown
from garra.sdk.channel import Button

LABELS: Final[dict[Choice, str]] = {"allow-once": "Allow once", "allow-always": "Allow always", "deny": "Deny"}


def text(approval: Approval, instead: str = "", *, after: str = "") -> str:
    """The card in Markdown. `instead` stands for what is asked where that is elsewhere; `after` ends what is over."""
    question = approval.question
    subject = instead or fenced(shown(question.subject))
    what = plain(doing(question.kind, question.tool))
    lines = [f"**May the agent {plain(question.agent_id)} {what}?**", subject, *_about(question)]
    if after:
        return "\n".join((*lines, "", after))
    minutes = max(1, round(question.life_ms / 60_000))
    name = short(approval.id)
    ways = [f"`/approve {name} allow-always`"] if "allow-always" in question.choices else []
    lines.append(f"Open for {minutes} min. {', '.join((*ways, f'`/deny {name}`'))}, or once:")
    return "\n".join((*lines, f"/approve {short(approval.id)} allow-once"))


def _about(question: Question) -> list[str]:
    size = measured(question.subject)
    lines = [f"Note: {size}."] if size else []
    lines += [f"Folder: {ticked(_line(question.cwd))}"] if question.cwd else []
    if question.host and question.host != "sandbox":
        lines.append(f"Where: {plain(question.host)}")
    if question.env:
        lines.append(f"With: {plain(', '.join(question.env))}")
    lines += [f"Because {plain(line)}" for line in question.why]
    if "allow-always" in question.choices:
        lines.append(f"Allow always means: {plain(question.remembers)}")
    return lines


def plain(words: str) -> str:
    """What somebody else may have chosen, as words of one line that mark nothing up."""
    return escaped(_line(words))


def _line(words: str) -> str:
    return shown(words).replace("\n", "\\n")


def fenced(words: str) -> str:
    """As code that nothing in it can end."""
    fence = "```"
    while fence in words:
        fence += "`"
    return f"{fence}\n{words}\n{fence}"


def buttons(approval: Approval) -> tuple[tuple[Button, ...], ...]:
    choices = [choice for choice in CHOICES if choice in approval.question.choices]
    return (tuple(Button(LABELS[choice], f"/approve {approval.id} {choice}") for choice in choices),)


def ended(approval: Approval, answer: Answer) -> str:
    """What became of a question, in a line."""
    match approval.phase:
        case "expired":
            return f"The question {short(approval.id)} has expired: nobody answered, and it was not done."
        case "withdrawn":
            return f"The question {short(approval.id)} is not needed any more."
        case _:
            words = said(answer)
            return f"{words[0].upper()}{words[1:]}."
