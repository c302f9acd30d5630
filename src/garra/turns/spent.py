"""What `/usage` says of today and of this month, of the conversation it is typed in."""

from __future__ import annotations

from garra.core.messages import Usage
from garra.core.spending import dollars
from garra.domains.spending.ledger import Ledger, Sum
from garra.sdk.ports import Clock


async def lines(ledger: Ledger | None, key: str, clock: Clock) -> list[str]:
    """One for today and one for the month; none where nobody counts."""
    if ledger is None:
        return []
    day = ledger.day(clock.now_ms())
    rows = await ledger.sums(("day",), f"{day[:7]}-01", day, session=key)
    nothing = Sum({}, 0, Usage())
    today = sum((row for row in rows if row.of["day"] == day), nothing)
    return [f"Today: {figures(today)}.", f"This month: {figures(sum(rows, nothing))}."]


def figures(spent: Sum) -> str:
    """`3 calls, 1,200 tokens, $0.0123`."""
    calls = f"{spent.calls:,} call{'' if spent.calls == 1 else 's'}"
    text = f"{calls}, {spent.usage.total:,} tokens"
    if spent.usage.cost:
        text += f", {dollars(spent.usage.cost)}"
    return f"{text} ({spent.unpriced:,} without a known price)" if spent.unpriced else text
