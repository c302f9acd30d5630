"""Makes web-inbox.png, web-chat.png and web-phone.png: the page of a live gateway after real turns, with a scripted model
behind it and a stand-in for Telegram. Needs chromium and the extra `browser`.

python -m docs.images.web
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from docs.images.make import ANSWER, OFFERS
from tests.e2e.browser import browsing
from tests.e2e.resident import Resident

from garra.testing.model_server import ModelServer, Say, Use
from garra.testing.telegram import Fault, TelegramServer

HERE = Path(__file__).parent
MODEL = "anthropic/claude-sonnet-5"
ANN, BOB = 1001, 1002
NAMES = {ANN: "Ann", BOB: "Bob"}
TURNS: tuple[tuple[int, str, tuple[Any, ...]], ...] = (
    (ANN, "When does the train to Lisbon leave on Friday?", (Say("At 09:40 from platform 7, by way of Madrid. You have to change there; there are 50 minutes for it."),)),
    (BOB, "Is the heating bill paid?", (Use("grep", {"pattern": "heating", "path": "bills"}), Say("Yes: paid on 3 November, 184.20, by transfer. The receipt is `bills/heating-11.md`."))),
    (ANN, "And what will the weather be there?", (Say("Mild and dry until Sunday, 17 degrees in the afternoon; showers on Monday."),)),
    (BOB, "Please sum up the letter of the school", (Say("The school is closed on Monday; lessons begin again on Tuesday at eight."),)),
)  # fmt: skip
OWNER = "Compare the three offers in the folder. Which one leaves out the roof?"


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer() as model, TelegramServer() as telegram:
            garra = house(Path(folder), model, telegram)
            await garra.start()
            try:
                await turns(garra, model, telegram)
                await pictures(garra)
            finally:
                await garra.stop()


def house(root: Path, model: ModelServer, telegram: TelegramServer) -> Resident:
    provider = {
        "api": "openai-completions", "baseUrl": f"{model.url}/v1", "apiKey": "none",
        "models": [{"id": "claude-sonnet-5", "name": "Sonnet", "contextWindow": 200_000, "cost": {"input": 3, "output": 15}}],
    }  # fmt: skip
    found = Resident(root, model.url, {
        "models": {"providers": {"anthropic": provider}},
        "agents": {"defaults": {"model": {"primary": MODEL}}},
        "channels": {"telegram": {
            "botToken": telegram.token, "apiRoot": telegram.url, "dmPolicy": "allowlist", "allowFrom": [ANN, BOB],
        }},
        "session": {"dmScope": "per-channel-peer"},
    })  # fmt: skip
    for folder, files in (
        ("offers", OFFERS),
        ("bills", {"heating-11.md": "heating, November: 184.20, paid 3 November"}),
    ):
        (found.state / "workspace" / folder).mkdir(parents=True)
        for name, text in files.items():
            (found.state / "workspace" / folder / name).write_text(text)
    return found


async def turns(garra: Resident, model: ModelServer, telegram: TelegramServer) -> None:
    """What was said in the chats, and then by the owner."""
    for number, (user, text, replies) in enumerate(TURNS):
        model.then(*replies)
        before = len(telegram.asked("sendMessage"))
        if number == len(TURNS) - 1:  # the last cannot be sent, so that a row needs a person
            telegram.fail("sendMessage", Fault(403, "Forbidden: bot was blocked by the user", times=50))
        telegram.say(user, text, **{"from": {"id": user, "is_bot": False, "first_name": NAMES[user]}})
        async with asyncio.timeout(60):
            while len(telegram.asked("sendMessage")) == before or model.replies:  # noqa: ASYNC110 - it tells of nothing
                await asyncio.sleep(0.2)
        await asyncio.sleep(2)
    model.replies.clear()
    model.then(
        Use("ls", {"path": "offers"}), Use("grep", {"pattern": "Roof", "path": "offers"}, id="call_2"),
        Say(ANSWER, usage=(2310, 184)),
    )  # fmt: skip
    async with garra.client() as client:
        await client.say(OWNER)


async def pictures(garra: Resident) -> None:
    async with browsing(width=1280, height=800, color_scheme="light", device_scale_factor=1.5) as tab:
        await tab.open(garra, "/")
        await tab.page.wait_for_selector(".mail")
        await tab.page.screenshot(path=HERE / "web-inbox.png")
    async with browsing(width=1280, height=800, color_scheme="dark", device_scale_factor=1.5) as tab:
        await tab.open(garra, "/chat")
        await tab.sees("would be")
        await tab.page.screenshot(path=HERE / "web-chat.png")
    async with browsing(width=390, height=844, color_scheme="light", device_scale_factor=2) as tab:
        await tab.open(garra, "/")
        await tab.page.wait_for_selector(".mail")
        await tab.page.screenshot(path=HERE / "web-phone.png")


if __name__ == "__main__":
    asyncio.run(main())
