"""The original's own gateway, from its npm package where a folder has it: `GARRA_TEST_OPENCLAW` names one with
`bin/node` and `node_modules/openclaw`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.resident import TOKEN, Resident

START_S = 120.0
HOME = Path(os.environ.get("GARRA_TEST_OPENCLAW", ""))
PACKAGE = HOME / "node_modules" / "openclaw"
PAGE = PACKAGE / "dist" / "control-ui"
needed = pytest.mark.skipif(
    not os.environ.get("GARRA_TEST_OPENCLAW"),
    reason="GARRA_TEST_OPENCLAW names no folder with the original (bin/node, node_modules/openclaw)",
)


class Original(Resident):
    """Configured as ours is: the keys are the same."""

    @property
    def config_file(self) -> Path:
        return self.state / "openclaw.json"

    async def launch(self) -> None:
        env = {**self.env, "OPENCLAW_STATE_DIR": str(self.state), "PATH": f"{HOME / 'bin'}:{os.environ['PATH']}"}
        with (self.root / "gateway.log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                HOME / "bin" / "node", PACKAGE / "openclaw.mjs", "gateway", "run", env=env, cwd=self.root,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """With all it started."""
        assert self.process is not None
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)


@asynccontextmanager
async def original(root: Path, model_url: str, origin: str) -> AsyncIterator[Original]:
    """A running one, which lets in the page that came from `origin`."""
    made = await asyncio.to_thread(Original, root, model_url)
    made.config["gateway"] |= {"mode": "local", "bind": "loopback", "controlUi": {"allowedOrigins": [origin]}}
    made.config["gateway"]["auth"] = {"mode": "token", "token": TOKEN}
    made.write()
    await made.launch()
    try:
        async with asyncio.timeout(START_S):
            while not await made.ready():
                assert made.process, made.log()
                assert made.process.returncode is None, made.log()
                await asyncio.sleep(0.2)
        yield made
    finally:
        made.kill()
        await made.gone()
