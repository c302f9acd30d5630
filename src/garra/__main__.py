"""The launcher: nothing heavy is imported before it is known what is wanted."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """The `garra` command. Gives the exit code."""
    if sys.version_info < (3, 11):  # noqa: UP036 - the launcher itself must run on an older Python to say so
        found = ".".join(map(str, sys.version_info[:2]))
        sys.stderr.write(f"Garra needs Python 3.11 or newer; this is {found}. Install a newer Python and try again.\n")
        return 1
    _streams()
    if len(sys.argv) == 2:
        from garra.faces.cli.fast import answer
        from garra.io.env import read

        text = answer(sys.argv[1], read())
        if text is not None:
            sys.stdout.write(text)
            return 0
    from garra.faces.cli.main import run

    return run(sys.argv[1:])


def _streams() -> None:
    """A shell may close a standard stream (`>&-`): what is said there is lost then, and nothing else is."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
