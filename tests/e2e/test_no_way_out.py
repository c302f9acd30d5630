"""Where no bubblewrap is: the network of commands is off, whatever is listed, and it is said what would open it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from garra.testing.model_server import Say, Use
from tests.e2e.resident import resident, strict_model, words
from tests.e2e.test_approvals import results

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")]


async def test_under_landlock_alone_nothing_is_reached_and_the_remedy_is_told(tmp_path: Path) -> None:
    box = {"backend": "landlock", "egress": {"allow": ["127.0.0.1", "localhost"]}}
    more = {"agents": {"defaults": {"sandbox": box}}}
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        port = listener.getsockname()[1]
        reach = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"
        async with strict_model() as model, resident(tmp_path, model.url, more) as program, program.client() as client:
            model.then(Use("exec", {"command": reach}), Use("exec", {"command": "false"}, id="c2"), Say("done"))
            assert words(await client.say("go")) == "done"
            told, plain = results(model)[-2:]
            assert "Permission denied" in told
            assert "landlock alone can make no way out; egress.allow lists 2 hosts" in told
            assert "apt install bubblewrap" in told
            assert "bubblewrap" not in plain
            with pytest.raises(BlockingIOError):
                listener.accept()
            code, out, _ = await program.run("doctor")
            assert "opens nothing: under landlock alone" in out
            code, out, _ = await program.run("sandbox", "explain")
            assert (code, "only bubblewrap can lead out" in out) == (0, True)
