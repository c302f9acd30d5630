"""Senders that are like somebody on the owner's lists: the gate that every event of every channel passes."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from garra.config.sections import Config
from garra.core import access
from garra.core.access import Admitted, Dispatch, Facts
from garra.domains.access.allowlist import Accounts, read
from tests.hostile.cases import Hostile, of


def admitted(case: Hostile, sender: str) -> Admitted | None:
    """Who was let in, by the rules as the settings have them."""
    channels = {"irc": {}} if case.get("elsewhere") else {case["channel"]: case["settings"]}
    try:
        config = Config.model_validate({"channels": channels, "commands": {"ownerAllowFrom": case.get("owner", [])}})
    except ValidationError:  # then the settings as they were before go on to hold
        return None
    account = Accounts(lambda: config).find(case["channel"], "default")
    assert account == read(config, case["channel"], "default")
    group = case.get("group", "")
    room = account.group(group).room if group else None
    said = Facts("message", sender, group or sender, mentioned=True, command=True, room=room)
    found = access.judge(account.policy, said)
    return found.admitted if isinstance(found, Dispatch) else None


@pytest.mark.parametrize("case", of("names"), ids=lambda case: case.id)
def test_who_is_only_like_somebody_is_nobody(case: Hostile) -> None:
    found = admitted(case, case["sender"])
    if case.get("guest"):
        assert found is not None
        assert (found.owner, found.named) == (False, False)
    else:
        assert found is None


def plain(case: Hostile) -> list[str]:
    """The ids that a list of direct senders names, where it names some."""
    listed = case["settings"].get("allowFrom", ()) if case["settings"].get("dmPolicy") == "allowlist" else ()
    return [str(each) for each in listed if str(each) and str(each)[0] in "@U4a1" and len(str(each)) > 1]


@pytest.mark.parametrize("case", [case for case in of("names") if plain(case)], ids=lambda case: case.id)
def test_whom_the_list_names_is_let_in(case: Hostile) -> None:
    """The control: the very id that a list has."""
    assert admitted(case, plain(case)[-1]) is not None
