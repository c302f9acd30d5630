"""The rights of an operator's connection, and which includes which. A name we do not know is only an admin's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

ADMIN: Final = "operator.admin"
READ: Final = "operator.read"
WRITE: Final = "operator.write"
APPROVALS: Final = "operator.approvals"
PAIRING: Final = "operator.pairing"
QUESTIONS: Final = "operator.questions"
TALK: Final = "operator.talk"

SATISFIED_BY: Final[Mapping[str, frozenset[str]]] = {
    READ: frozenset({READ, WRITE, ADMIN}),
    TALK: frozenset({TALK, WRITE, ADMIN}),
}


def reaches(scopes: frozenset[str], scope: str) -> bool:
    """Whether `scopes` include the right `scope`: admin has every right, write has read and talk."""
    return not scopes.isdisjoint(SATISFIED_BY.get(scope) or (scope, ADMIN))


def covers(granted: Iterable[str], asked: Collection[str]) -> bool:
    """Whether every right in `asked` is in `granted`. Nothing granted covers nothing asked."""
    held = frozenset(granted)
    return all(reaches(held, scope) for scope in asked)
