"""Secrets for programs that the owner named: in the environment of that one program, started without a shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from garra.core import commands, programs
from garra.core.commands import Simple
from garra.core.secret import Secret
from garra.domains.exec.errand import Errand, Settled
from garra.domains.exec.judging import located, searched


def lend(errand: Errand, settled: Settled) -> Settled:
    """What starts, with what its program is to have. Nothing but the one program may stand in the line, with plain
    words as arguments: no shell, no variables, nothing read or written elsewhere. Blocks. Raises NotFound for a secret
    that is lacking.
    """
    command = commands.parse(errand.launch.command)
    if not isinstance(command, Simple) or command.env or command.redirections or errand.launch.env:
        return settled
    name = command.argv[0]
    found = located([name], tuple(searched(errand, settled.plan.workspace)), settled.plan.workdir).get(name)
    if found is None or programs.can_do_anything(name) or programs.can_do_anything(os.path.basename(found.real)):  # noqa: PTH119
        return settled
    lent = _meant(errand.ground.settings.lent, name, (found.path, found.real))
    if not lent:
        return settled
    env = {**settled.plan.env, **{variable: secret.reveal() for variable, secret in lent.items()}}
    argv = (found.path, *command.argv[1:])
    same = "" if errand.shut_in else ":".join(map(str, found.identity))
    return Settled(replace(settled.plan, env=env, argv=argv), argv, same)


def _meant(lent: Mapping[str, Mapping[str, Secret]], name: str, paths: tuple[str, str]) -> Mapping[str, Secret] | None:
    """What the owner lends to the program: named by its path, or by a name under which it is found and called."""
    by_path = next((lent[path] for path in paths if path in lent), None)
    return by_path if by_path is not None else (lent.get(name) if "/" not in name else None)
