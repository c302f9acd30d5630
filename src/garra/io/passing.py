"""Hands a secret of this run to the same user's own programs, through a socket in the state folder: no file holds it.

The socket is its owner's alone (mode 600, in a folder of mode 700); where the system tells who knocks (Linux), it is
checked as well.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path


async def hand_out(path: Path, secret: Callable[[], str]) -> Callable[[], Awaitable[None]]:
    """Answer each knock of this user's with what `secret` gives; what this returns ends it.

    Raises OSError when the socket cannot be made (a path of more than about 100 bytes).
    """

    def knocked(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if _same_user(writer.get_extra_info("socket")):
            writer.write(secret().encode() + b"\n")
        writer.close()

    server = await asyncio.start_unix_server(knocked, sock=await asyncio.to_thread(_bound, path))

    async def close() -> None:
        server.close()
        await asyncio.to_thread(path.unlink, missing_ok=True)

    return close


def _bound(path: Path) -> socket.socket:
    """A listening socket that only its owner reaches; what a dead run left there is removed."""
    path.unlink(missing_ok=True)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(str(path))
    except OSError:
        made.close()
        raise
    finally:
        os.umask(before)
    made.setblocking(False)
    return made


def _same_user(peer: socket.socket) -> bool:
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True  # the file's mode is the guard there
    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return user in (os.getuid(), 0)
