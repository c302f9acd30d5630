"""What became of one message, in a sentence for its owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WHYS = {
    "silence": "The agent read it and chose to say nothing.",
    "joined": "It was taken into a turn that was under way and answered with it.",
    "stopped": "It was stopped before it was answered.",
    "interrupted": "A newer message took its place before it was answered.",
    "timeout": "It took too long and was ended; one line in the chat says so.",
    "pairing": "Somebody who is not let in wrote it: it reached no model, and they were told a pairing code.",
    "not-paired": "Somebody who is not let in wrote it: it reached no model, and no code was told.",
    "no longer admitted": "Its sender was let in when it came and is no more: it was not answered.",
    "dm-disabled": "Direct messages are off here (dmPolicy): it reached no model.",
    "dm-not-listed": "Its sender is not on the list (allowFrom): it reached no model.",
    "group-disabled": "Groups are off here (groupPolicy): it reached no model.",
    "group-not-listed": "Its group is not on the list (groups): it reached no model.",
    "group-sender-not-listed": "Its sender may not speak to the bot in this group: it reached no model.",
    "sender-is-group": "A group, not a person, is named as its sender: it reached no model.",
    "not-mentioned": "It was said in a group and not to the bot: it is kept for the next turn there, and not answered.",
    "no-sender-id": "The platform does not say who wrote it: it reached no model.",
    "bot": "Another bot wrote it: it reached no model.",
    "bot-loop": "Two bots had been answering each other too fast: it reached no model.",
    "own": "The bot wrote it itself.",
    "dropped by the owner": "Its owner gave it up.",
}
"""By the word with which the inbox closed it."""

OPEN = {
    "pending": "It waits to be taken up.",
    "claimed": "It is being looked at.",
    "adopted": "An agent is at work on it.",
    "dead": "It was given up, and no answer was made.",
}


def fate(
    message: Mapping[str, Any], answers: Sequence[Mapping[str, Any]], timeline: Sequence[Mapping[str, Any]]
) -> str:
    """The sentence; empty for what goes out, whose own state says it."""
    if message["direction"] != "in":
        return ""
    why = str(message.get("reason") or "")
    if message["state"] != "done":
        return OPEN.get(str(message["state"]), "")
    if why == "failed":
        return f"It was not answered: {_failure(timeline)} {_arrived(answers, 'The line that says so')}"
    if why == "answered" or why.startswith("command "):
        return _arrived(answers, "Its answer")
    return WHYS.get(why, "It was not something to answer.")


def _failure(timeline: Sequence[Mapping[str, Any]]) -> str:
    found = [str(each.get("detail") or "") for each in timeline if each["station"] == "answered"]
    told = found[-1].strip() if found and found[-1] not in ("", "ok") else "a fault kept its run from an end"
    return told if told.endswith((".", "!", "?")) else f"{told}."


def _arrived(answers: Sequence[Mapping[str, Any]], what: str) -> str:
    """What became of the messages that answer it, the worst first."""
    states = {str(each["state"]): each for each in answers}
    for state, words in (
        ("dead", "did not arrive"),
        ("unsure", "was sent, but may not have arrived"),
        ("pending", "waits to be sent"),
        ("sending", "is with the platform"),
    ):
        if state in states:
            why = str(states[state].get("reason") or "")
            return f"{what} {words}{f': {why}' if why else ''}."
    return f"{what} arrived." if answers else f"{what} is on no record any more."
