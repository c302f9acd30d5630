"""What became of the answers, as the owner is shown it."""

from __future__ import annotations

import json

from tests.e2e.resident import Resident


async def outcome(program: Resident) -> tuple[int, int]:
    """How many messages the platform confirmed, and how many it may have got."""
    counts = []
    for state in ("sent", "unsure"):
        _, out, err = await program.run("messages", "list", "--out", "--state", state, "--json")
        assert out, err
        counts.append(len(json.loads(out)["messages"]))
    return counts[0], counts[1]
