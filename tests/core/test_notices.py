"""Words about messages reach the owner, and nobody else."""

from __future__ import annotations

from garra.core.notices import Reach, elsewhere, told

ANN = Reach("telegram", "main", "1", "ann", "1", owner=True)
ANN_ON_IRC = Reach("irc", "main", "ann", "ann", owner=True)
BOB = Reach("telegram", "main", "2", "bob", "2")


def test_where_owners_are_named_only_they_hear() -> None:
    assert told([BOB, ANN], named=True) == (ANN,)


def test_named_owners_of_whom_none_is_reached_leave_nobody() -> None:
    assert told([BOB], named=True) == ()


def test_without_owners_the_only_person_hears_on_all_their_channels() -> None:
    assert told([ANN, ANN_ON_IRC], named=False) == (ANN, ANN_ON_IRC)


def test_without_owners_one_of_several_people_is_not_told_of_the_others() -> None:
    assert told([BOB, ANN], named=False) == ()
    assert told([], named=False) == ()


def test_another_account_is_best_then_another_chat_of_the_same() -> None:
    other = Reach("telegram", "main", "3", "ann")
    assert elsewhere([other, ANN_ON_IRC], "telegram", "main", "1") == (ANN_ON_IRC, other)


def test_the_chat_at_fault_is_not_told_in_itself() -> None:
    assert elsewhere([ANN], "telegram", "main", "1") == ()
    assert elsewhere([Reach("telegram", "main", "1", "ann")], "telegram", "main", "1") == ()


def test_an_account_at_fault_tells_nothing_by_itself() -> None:
    assert elsewhere([ANN, ANN_ON_IRC], "telegram", "main", "") == (ANN_ON_IRC,)
