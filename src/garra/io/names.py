"""What a name's addresses are, for a command that has a moment to look."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late

WAIT_S = 3.0


def addresses(host: str) -> list[str]:
    """The addresses of `host`; none where there are none, or where nobody says so in time. Blocks."""
    pool = ThreadPoolExecutor(1)
    try:
        found = pool.submit(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM).result(WAIT_S)
    except (OSError, UnicodeError, Late):
        return []
    finally:
        pool.shutdown(wait=False)
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
