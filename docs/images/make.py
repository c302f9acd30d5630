"""Makes chat.png: the real chat on a real house, with a scripted model behind it. Needs chromium.

python -m docs.images.make
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from garra import app
from garra.config.paths import resolve
from garra.faces.tui.backend import Backend
from garra.faces.tui.chat import Chat, Opening
from garra.faces.tui.composer import Composer
from garra.faces.tui.embedded import Embedded
from garra.io.clock import SystemClock
from garra.io.env import Environment
from garra.testing.model_server import ModelServer, Say, Use

HERE = Path(__file__).parent
SIZE = (92, 30)
ANSWER = """**Offer 2** leaves out the roof; the two others include it.

| offer | walls | roof | total |
| --- | ---: | ---: | ---: |
| 1 | 18,400 | 11,200 | 29,600 |
| 2 | 17,900 | – | 17,900 |
| 3 | 19,050 | 9,800 | 28,850 |

Offer 2 looks cheapest only because of that: with the roof at the price of offer 3 it would be `27,700`.
"""
OFFERS = {
    "offer-1.md": "Walls 18,400. Roof 11,200. Total 29,600.",
    "offer-2.md": "Walls 17,900. Total 17,900.",
    "offer-3.md": "Walls 19,050. Roof 9,800. Total 28,850.",
}


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer() as model:
            model.then(
                Use("ls", {"path": "offers"}),
                Use("grep", {"pattern": "Roof", "path": "offers"}, id="call_2"),
                Say(ANSWER, usage=(2310, 184)),
            )
            svg = await shown(Path(folder), model.url)
        await asyncio.to_thread(picture, Path(folder), svg)


def picture(folder: Path, svg: str) -> None:
    """Draws the SVG as a browser does."""
    page = folder / "page.html"
    page.write_text(f'<body style="margin:0;overflow:hidden;background:#1b1a17">{svg}</body>')
    browser = shutil.which("chromium") or "chromium"
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         f"--user-data-dir={folder}/profile", "--window-size=1180,816", "--force-device-scale-factor=1.5",
         f"--screenshot={HERE / 'chat.png'}", page.as_uri()],
        check=True, capture_output=True,
    )  # fmt: skip


async def shown(home: Path, model_url: str) -> str:
    """The chat after one turn with tools, as SVG."""
    state = home / ".garra"
    (state / "workspace" / "offers").mkdir(parents=True)
    for name, text in OFFERS.items():
        (state / "workspace" / "offers" / name).write_text(text)
    provider = {
        "api": "openai-completions",
        "baseUrl": f"{model_url}/v1",
        "apiKey": "none",
        "models": [{"id": "claude-sonnet-5", "name": "Sonnet", "cost": {"input": 3, "output": 15}}],
    }
    config = {
        "models": {"providers": {"anthropic": provider}},
        "agents": {"defaults": {"model": {"primary": "anthropic/claude-sonnet-5"}}},
    }
    (state / "garra.json").write_text(json.dumps(config))
    env = Environment({"HOME": str(home), "PATH": "/usr/bin:/bin"})
    paths = resolve(env)
    port = Embedded(lambda consent, tell: app.embedded(paths, env, consent=consent, tell=tell))
    screen = Chat(Backend(port), Opening(), SystemClock())
    async with screen.run_test(size=SIZE) as pilot:
        await pilot.pause(2)
        screen.query_one(Composer).put("Compare the three offers in the folder. Which one leaves out the roof?")
        await pilot.press("enter")
        await pilot.pause(4)
        return screen.export_screenshot(title="garra")


if __name__ == "__main__":
    asyncio.run(main())
