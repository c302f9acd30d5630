"""What judges commands in this house, and what is remembered of those in the background."""

from __future__ import annotations

from garra.domains.exec.approvals import Approvals
from garra.domains.exec.records import SPACE, Records
from garra.domains.exec.supervisor import Supervisor
from garra.io.store.db import Database
from garra.io.store.shelf import Shelf


async def wire(supervisor: Supervisor, approvals: Approvals, db: Database, *, shared: bool) -> None:
    """`shared`: other processes run commands beside this one, and end without it; then nothing is remembered."""
    supervisor.asker, supervisor.rules = approvals, lambda: approvals.rulebook.rules
    if not shared:
        records = Records(Shelf(db, SPACE), supervisor.clock)
        await records.load()
        supervisor.records = records
