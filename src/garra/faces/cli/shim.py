"""`garra shim`: an `openclaw` command that runs Garra, for programs that manage OpenClaw."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from garra.core.errors import UserError
from garra.faces.cli import output, parsing, place
from garra.io.files import atomic

MARK = "# Written by garra shim"
SCRIPT = """\
#!/bin/sh
{mark}: Garra in OpenClaw's place (~/.openclaw, openclaw.json, OPENCLAW_*).
GARRA_COMPAT=openclaw
export GARRA_COMPAT
exec {python} -P -m garra "$@"
"""


def run(arguments: Sequence[str]) -> int:
    parser = parsing.with_json(
        parsing.parser("shim", "Write an `openclaw` command that runs Garra on ~/.openclaw and openclaw.json.")
    )
    parser.add_argument("--dir", default="~/.local/bin", metavar="DIR", help="where to put it (~/.local/bin)")
    parser.add_argument("--name", default="openclaw", help="what it is called (openclaw)")
    parser.add_argument("--force", action="store_true", help="replace a file that is not ours")
    asked = parser.parse_args(list(arguments))
    here = place.here()
    file = _folder(here.paths.home, asked.dir) / asked.name
    write(file, force=asked.force)
    first = shutil.which(asked.name, path=here.env.get("PATH"))
    seen = first is not None and Path(first).resolve() == file.resolve()
    if asked.json:
        output.say_json({"ok": True, "path": str(file), "onPath": seen})
        return 0
    output.say(f"Wrote {file}")
    if not seen:
        why = f"{first} comes first on the PATH" if first else f"{file.parent} is not on the PATH"
        output.say(f'{why}. Put this in your shell\'s start file:  export PATH="{file.parent}:$PATH"')
    return 0


def write(file: Path, *, force: bool = False) -> None:
    """Put the script at `file`. Raises UserError when something else stands there and `force` is not said."""
    if (file.exists() or file.is_symlink()) and not force and MARK not in _text(file):
        raise UserError(f"{file} exists and is not ours; --force replaces it, or choose another place with --dir")
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(file, SCRIPT.format(mark=MARK, python=shlex.quote(sys.executable)).encode(), 0o755)


def _folder(home: Path, text: str) -> Path:
    return home / text[2:] if text.startswith("~/") else Path(text).absolute()


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
