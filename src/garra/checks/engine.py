"""Does a container engine answer."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Mapping

WAIT_S = 5.0
SOCKET = "/var/run/docker.sock"


def fault(engine: str, env: Mapping[str, str]) -> str:
    """Why `engine` cannot be used; empty where it can, as far as that is to be seen. Blocks.

    Podman has no daemon to ask; a docker on another machine is not asked.
    """
    if shutil.which(engine, path=env.get("PATH")) is None:
        return "it is not installed"
    address = env.get("DOCKER_HOST", "")
    if engine != "docker" or (address and not address.startswith("unix://")):
        return ""
    return _asked(address.removeprefix("unix://") or SOCKET)


def _asked(path: str) -> str:
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(WAIT_S)
            line.connect(path)
            line.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            answer = line.recv(1_024)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    return "" if answer.split(b"\r\n", 1)[0].endswith(b" 200 OK") else f"{path} does not answer as an engine does"
