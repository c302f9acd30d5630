"""What is wrong with an installation and where it stands open, asked and mended over the protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.gateway.house import Refused
from tests.gateway.standing import standing

CLOSED, OPEN = 0o700, 0o755


async def test_what_the_audit_finds_is_mended_and_told_with_the_way_back(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest() as guest:
        state = gateway.host.paths.state
        await asyncio.to_thread(state.chmod, OPEN)
        report = await guest.call("security.audit", {})
        found = [each["checkId"] for each in report["findings"] if each["fixable"]]
        assert found
        assert sum(report["summary"].values()) == len(report["findings"])
        done = await guest.call("security.mend", {})
        assert done["fix"]["ok"] is True
        assert any(str(state) in each["what"] and each["undo"] for each in done["fix"]["changes"])
        assert (await asyncio.to_thread(state.stat)).st_mode & 0o777 == CLOSED
        assert not [each for each in done["report"]["findings"] if each["fixable"]]


async def test_the_doctor_says_what_stands_in_the_way_and_only_an_owner_has_it_mended(tmp_path: Path) -> None:
    async with standing(tmp_path) as gateway, gateway.guest(scopes=("operator.read",)) as reader:
        told = await reader.call("doctor.examine", {})
        assert {each["level"] for each in told["findings"]} <= {"ok", "note", "warn", "bad"}
        assert {"config", "state"} <= {each["check"] for each in told["findings"]}
        assert told["ok"] == all(each["level"] != "bad" for each in told["findings"])
        for method in ("doctor.mend", "security.audit", "security.mend"):
            with pytest.raises(Refused, match=r"missing scope: operator\.admin"):
                await reader.call(method, {})
        async with gateway.guest() as owner:
            with pytest.raises(Refused, match="nothing of it to mend"):
                await owner.call("doctor.mend", {"check": "no such check"})
