"""The packages of others that a plugin needs: installed where they are missing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from garra.core.errors import UserError
from garra.domains.plugins.install import Installer
from garra.faces.cli import output
from garra.io.process.door import Programs

if TYPE_CHECKING:
    from garra.domains.plugins.discover import Plugin
    from garra.faces.cli.place import Place


def install(here: Place, plugin: Plugin) -> bool:
    """Install what is missing, telling its progress; False when nothing was. Raises UserError."""
    try:
        return asyncio.run(_installed(here, plugin))
    except KeyboardInterrupt:
        raise UserError("stopped; what pip had not put in place yet is not installed: run it again") from None


async def _installed(here: Place, plugin: Plugin) -> bool:
    programs = Programs()
    try:
        return await Installer(programs, here.env, output.note)(plugin)
    finally:
        await programs.close()
