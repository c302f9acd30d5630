"""An installation that was lived in, by turns that were run: conversations with tools, tables and Chinese words, people
on a channel of whom one could not be answered, a question that waits, a note in the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from garra.testing.model_server import Say
from garra.testing.webhook import SECRET, Fail, Peer
from tests.e2e.resident import Client, StrictModel, resident, strict_model
from tests.e2e.test_webhook import World

OFFERS = """Three offers came, one is whole.

| | builder | sum | roof |
|---|---|---:|---|
| 1 | Kessler & Sons | 24,300 | yes |
| 2 | North Timber | 17,900 | **no** |
| 3 | Alba | 23,150 | yes |

Offer 2 is the cheapest and leaves out the roof. I would ask Alba for:

1. a date,
2. the price of the windows.

```python
def total(offer: dict[str, int]) -> int:
    return sum(offer.values())
```

> Kessler answers within two days, as a rule. See [their page](https://kessler.example/offers).
"""
CHINESE = "今天有三封新邮件：一封来自建筑公司，一封是账单，还有一封可以明天再看。要我先回复建筑公司吗？"
TALKS = (
    ("agent:main:main", "Which of the offers is the best one?", OFFERS),
    (
        "agent:main:trip",
        "Find me a quiet hotel in Lisbon for the first week of May, near the river",
        "Two are quiet: **Casa do Rio** and *Pensão Alba*.",
    ),
    ("agent:main:mail", "今天有什么新邮件？", CHINESE),
    (
        "agent:main:taxes",
        "What is still missing for the tax office?",
        "The receipt of the heating, and two signatures.",
    ),
)
MORE = {
    "tools": {"exec": {"host": "gateway", "security": "full", "ask": "off"}},
    "messages": {"inbound": {"debounceMs": 0}},
}
FOLDERS = "/home/ines/documents/house /home/ines/documents/letters"
ASKS = f'tool:exec {{"command": "tar czf /backup/house-2026.tgz --exclude=.cache {FOLDERS} && sync"}}'


@asynccontextmanager
async def lived_in(folder: Path) -> AsyncIterator[World]:
    """It runs as long as the block."""
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(Peer())
        model = await stack.enter_async_context(strict_model())
        own = {
            "secret": SECRET,
            "url": f"{peer.url}/in",
            "allowPrivateNetwork": True,
            "dmPolicy": "pairing",
            "allowFrom": ["ann", "bo", "cleo"],
        }
        program = await stack.enter_async_context(resident(folder, model.url, {**MORE, "channels": {"webhook": own}}))
        found = World(peer, model, program)
        await found.taken()
        async with program.client(
            scopes=["operator.admin", "operator.read", "operator.write", "operator.approvals"], caps=["exec-approvals"]
        ) as client:
            await talks(client, model)
            await people(found)
            known = (await client.call("config.get", {}))["hash"]
            await client.call("config.patch", {"raw": '{"tools": {"exec": {"ask": "always"}}}', "baseHash": known})
            await client.send(ASKS, "agent:main:main")
            await asyncio.to_thread(
                (program.state / "workspace" / "MEMORY.md").write_text,
                "# MEMORY.md\n\n- The gate code is in the blue book.\n- Ines is away on Fridays.\n",
            )
            for _ in range(300):
                if await waiting(client):
                    break
                await asyncio.sleep(0.05)
            yield found


async def waiting(client: Client) -> bool:
    got: object = await client.call("exec.approval.list", {})
    return bool(got)


async def talks(client: Client, model: StrictModel) -> None:
    for key, asked, answer in TALKS:
        model.then(Say(answer, thinking="The roof is the dear part; compare that first."))
        await client.say(asked, key)
    for command in ("ls -la /etc | head -5", "echo walls 17,900; echo roof 4,200", "false"):
        await client.say(f'Look yourself. tool:exec {{"command": "{command}"}}', "agent:main:main")


async def people(here: World) -> None:
    for chat, said, answer in (
        ("ann", "When do you open tomorrow?", "At nine."),
        ("bo", "Is the blue one there?", "Yes, **one** is left."),
        ("cleo", "Thank you!", "Gladly."),
    ):
        here.model.then(Say(answer))
        await here.say(said, chat)
        await here.until(partial(here.peer.shown, chat))
    here.peer.fails.extend([Fail(403), Fail(403), Fail(403)])
    here.model.then(Say("The delivery comes on Tuesday, between ten and twelve."))
    await here.say("Where is my delivery? It was to be here on Friday already, and nobody told me anything.", "ann")
    await here.say("May I write to you?", "stranger")
    await asyncio.sleep(0.5)
