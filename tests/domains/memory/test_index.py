"""Memory as it is asked: by a turn that may find only its own, with vectors and without."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from garra.core.errors import Unavailable
from garra.core.memory_sight import Viewer
from garra.core.taint import Mark
from garra.domains.memory.index import Memory, Ports, Wanted
from garra.domains.memory.remote import Endpoint, Remote
from garra.domains.memory.settings import Settings
from garra.domains.memory.vectors import floats
from garra.io.clock import SystemClock
from garra.io.tasks import Tasks
from tests.domains.memory.year import NOW, add, note, person, settings, transcript

OWNER = Viewer("agent:main:main", owner=True)
MAIN = "agent:main:main"


class Lines:
    """A child whose vectors have one number for each of some words."""

    WORDS = ("cello", "instrument", "boiler")

    def __init__(self) -> None:
        self.said: asyncio.Queue[bytes] = asyncio.Queue()
        self.asked: list[dict[str, Any]] = []
        self.rows: list[tuple[int, float]] = []

    async def send(self, line: bytes) -> None:
        asked = json.loads(line)
        self.asked.append(asked)
        if asked["op"] == "near":
            await self.said.put(json.dumps({"id": asked["id"], "near": self.rows}).encode())
        elif asked["op"] == "sync":
            await self.said.put(json.dumps({"id": asked["id"], "done": {"files": 1, "faults": ["x"]}}).encode())
        elif asked["op"] == "work":
            await self.said.put(b'{"left": 0}')

    async def line(self) -> bytes:
        return await self.said.get()

    async def kill(self) -> None:
        await self.said.put(b"")


class Children:
    def __init__(self) -> None:
        self.made: list[Lines] = []
        self.rows: list[tuple[int, float]] = []

    async def start(self, module: str) -> Lines:
        worker = Lines()
        worker.rows = self.rows
        self.made.append(worker)
        return worker


@asynccontextmanager
async def memory(
    given: Settings, children: Children | None = None, remote: Callable[[Settings], Any] = lambda _: None
) -> AsyncIterator[Memory]:
    async with Tasks() as spawn:
        ports = Ports(lambda _: given, children or Children(), spawn, SystemClock(), remote, lambda: True)
        found = Memory(ports)
        try:
            yield found
        finally:
            await found.close()


async def texts(found: Memory, query: str, viewer: Viewer = OWNER, **more: Any) -> list[str]:
    answer = await found.search(Wanted(query, **more), agent_id="main", viewer=viewer)
    return [hit.text for hit in answer.hits]


@pytest.mark.req("SESS-16")
async def test_nobody_finds_the_words_of_another(tmp_path: Path) -> None:
    note(tmp_path, "MEMORY.md", "- the secret of the house is kiwi\n")
    note(tmp_path, "memory/2026-05-02.md", "<!-- from a conversation with telegram:default:1 -->\n- Ann's kiwi diary\n")
    ann, bob = "agent:main:telegram:default:direct:1", "agent:main:telegram:default:direct:2"
    group = "agent:main:telegram:group:-100"
    transcript(tmp_path, "a", ann, [("user", "Ann's secret is kiwi")], **person("1"))
    transcript(tmp_path, "b", bob, [("user", "Bob's secret is kiwi")], **person("2"))
    transcript(tmp_path, "g", group, [("user", "the group's secret is kiwi")], **person("1", chatType="group"))
    transcript(tmp_path, "m", MAIN, [("user", "my own secret is kiwi")])
    transcript(tmp_path, "s", MAIN, [("user", "Ann says in the shared chat: kiwi")], **person("1"))
    async with memory(settings(tmp_path)) as found:
        query = "kiwi' OR owner <> '\" OR 1=1 --"
        assert set(await texts(found, query, Viewer(ann, "telegram:default:1"))) == {
            "User: Ann's secret is kiwi",
            "User: Ann says in the shared chat: kiwi",
            "<!-- from a conversation with telegram:default:1 -->\n- Ann's kiwi diary",
        }
        assert await texts(found, query, Viewer(bob, "telegram:default:2")) == ["User: Bob's secret is kiwi"]
        assert await texts(found, query, Viewer(group, "telegram:default:1", room=True)) == [
            "User: the group's secret is kiwi"
        ]
        assert set(await texts(found, query)) == {"- the secret of the house is kiwi", "User: my own secret is kiwi"}
        assert await texts(found, query, Viewer("agent:main:subagent:1")) == []


async def test_vectors_add_what_has_other_words_for_the_owner_alone(tmp_path: Path) -> None:
    note(tmp_path, "MEMORY.md", "- Ann plays the cello\n")
    transcript(tmp_path, "a", "agent:main:direct:2", [("user", "hidden")], **person("2"))
    children = Children()
    async with memory(settings(tmp_path, provider="local", model="small"), children) as found:
        children.rows.extend([(1, 0.95), (2, 0.99)])
        answer = await found.search(Wanted("which instrument"), agent_id="main", viewer=OWNER)
        assert (answer.mode, [hit.text for hit in answer.hits]) == ("hybrid", ["- Ann plays the cello"])
        assert answer.hits[0].citation == "MEMORY.md#L1"
        asked = children.made[0].asked
        assert [each["op"] for each in asked][:2] == ["open", "near"]
        assert asked[1]["owners"] == [""]


async def test_a_child_that_ends_leaves_the_words(tmp_path: Path) -> None:
    class Ends(Children):
        async def start(self, module: str) -> Lines:
            worker = await super().start(module)
            await worker.said.put(b"")
            return worker

    note(tmp_path, "MEMORY.md", "- Ann plays the cello\n")
    async with memory(settings(tmp_path, provider="local", model="small"), Ends()) as found:
        answer = await found.search(Wanted("cello"), agent_id="main", viewer=OWNER)
        assert (answer.mode, len(answer.hits)) == ("words", 1)
        assert "words alone" in answer.warning


class Embeddings:
    async def query(self, text: str) -> bytes:
        return floats([1.0, 0.0])

    async def passages(self, texts: list[str]) -> list[bytes]:
        return [floats([3.0, 4.0]) for _ in texts]


async def test_a_provider_makes_the_vectors_in_the_background(tmp_path: Path) -> None:
    note(tmp_path, "MEMORY.md", "- Ann plays the cello\n")
    children = Children()
    children.rows.append((1, 0.9))
    given = settings(tmp_path, provider="openai", model="text-embedding-3-small")
    async with memory(given, children, lambda _: Embeddings()) as found:
        answer = await found.search(Wanted("instrument"), agent_id="main", viewer=OWNER)
        assert (answer.mode, answer.hits[0].score) == ("hybrid", 0.63)
        await found.settled("main")
        counts, _ = await found.counts("main")
        assert (counts.wanted, counts.done) == (1, 1)


async def test_a_provider_that_fails_is_told(tmp_path: Path) -> None:
    def nobody(_: Settings) -> Any:
        raise Unavailable("no key is set")

    note(tmp_path, "MEMORY.md", "- Ann plays the cello\n")
    async with memory(settings(tmp_path, provider="openai", model="m"), remote=nobody) as found:
        answer = await found.search(Wanted("cello"), agent_id="main", viewer=OWNER)
        assert (answer.mode, answer.warning) == ("words", "searched by words alone: no key is set")


async def test_an_index_damaged_while_open_is_made_anew(tmp_path: Path) -> None:
    note(tmp_path, "MEMORY.md", "- Ann plays the cello\n")
    async with memory(settings(tmp_path)) as found:
        assert len(await texts(found, "cello")) == 1
        await found.close()
        (tmp_path / "memory.sqlite").write_bytes(b"broken" * 4_000)
        assert len(await texts(found, "cello")) == 1
        note(tmp_path, "MEMORY.md", "- Ann plays the harp\n")
        assert await texts(found, "harp") == []
        found.notice("main")
        assert await texts(found, "harp") == ["- Ann plays the harp"]
        found.notice("other")


async def test_much_new_text_is_read_by_the_child(tmp_path: Path) -> None:
    note(tmp_path, "MEMORY.md", "kiwi is a fruit\n" * 40_000)
    children = Children()
    async with memory(settings(tmp_path), children) as found:
        assert await texts(found, "kiwi") == []
        assert [each["op"] for each in children.made[0].asked] == ["open", "sync"]
        assert (await found.counts("main"))[1] == "x"
        assert (await found.index("main", force=True))["files"] == 1


async def test_limits_scores_and_sources_can_be_asked(tmp_path: Path) -> None:
    for at in range(9):
        note(tmp_path, f"memory/n{at}.md", f"kiwi number{at} " + "and more " * at)
    transcript(tmp_path, "a", MAIN, [("user", "kiwi")])
    async with memory(settings(tmp_path)) as found:
        assert len(await texts(found, "kiwi")) == 6
        assert len(await texts(found, "kiwi", limit=3)) == 3
        assert await texts(found, "kiwi", sources=("sessions",)) == ["User: kiwi"]
        assert await texts(found, "kiwi", least=0.999) == []
        assert await texts(found, "...") == []


async def test_the_only_piece_of_an_index_is_found(tmp_path: Path) -> None:
    note(tmp_path, "MEMORY.md", "kiwi\n")
    async with memory(settings(tmp_path, least=0.1)) as found:
        assert await texts(found, "kiwi") == ["kiwi"]


async def test_a_turn_does_not_find_its_own_question(tmp_path: Path) -> None:
    asked = "which boat did I name Petrel"
    path = transcript(tmp_path, "m", MAIN, [("user", "my boat is Petrel")])
    path.write_text(path.read_text().replace(str(NOW), str(NOW - 1_000)))
    add(path, [("user", asked), ("user", f"{asked} again")])
    async with memory(settings(tmp_path)) as found:
        assert len(await texts(found, "boat Petrel")) == 3
        assert await texts(found, "boat Petrel", but=(MAIN, NOW)) == ["User: my boat is Petrel"]
        assert len(await texts(found, "boat Petrel", but=("agent:main:other", NOW))) == 3


async def test_switched_off_means_off(tmp_path: Path) -> None:
    async with memory(settings(tmp_path, enabled=False)) as found:
        with pytest.raises(Unavailable, match="switched off"):
            await texts(found, "kiwi")
        assert not (tmp_path / "memory.sqlite").exists()


def test_marks_travel(tmp_path: Path) -> None:
    async def run() -> tuple[Mark, ...]:
        note(tmp_path, "memory/2026-05-02.md", "<!-- from a conversation that read a page -->\n- kiwi\n")
        async with memory(settings(tmp_path)) as found:
            answer = await found.search(Wanted("kiwi"), agent_id="main", viewer=OWNER)
            return answer.hits[0].marks

    assert asyncio.run(run()) == (Mark("memory", "memory/2026-05-02.md"),)


class Http:
    """A provider's server."""

    def __init__(self, *answers: tuple[int, dict[str, str], Any]) -> None:
        self.answers, self.asked = list(answers), []  # type: list[Any], list[tuple[str, Any, Any]]

    @asynccontextmanager
    async def stream(self, method: str, url: str, *, headers: Any, body: bytes, **_: Any) -> AsyncIterator[Any]:
        self.asked.append((url, headers, json.loads(body)))
        status, told, answer = self.answers.pop(0)

        class Body:
            def __init__(self) -> None:
                self.status, self.headers = status, told

            async def read(self, limit: int) -> bytes:
                return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

        yield Body()


class Clock(SystemClock):
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def remote(http: Http, clock: Clock, shape: str = "openai", provider: str = "openai") -> tuple[Remote, list[Any]]:
    spent: list[Any] = []
    endpoint = Endpoint(provider, "m", "https://a.example/v1", shape, {"authorization": "Bearer sk-x"})
    return Remote(http, clock, endpoint, lambda *each: spent.append(each)), spent  # type: ignore[arg-type]


ONE = {"data": [{"index": 0, "embedding": [3.0, 4.0]}], "usage": {"prompt_tokens": 5}}


async def test_a_busy_provider_is_asked_again_when_it_says() -> None:
    http, clock = Http((429, {"retry-after": "2"}, b""), (503, {}, b""), (200, {}, ONE)), Clock()
    made, spent = remote(http, clock)
    assert await made.query("kiwi") == floats([3.0, 4.0])
    assert (clock.slept, spent) == ([2.0, 2.0], [("openai", "m", 5)])
    assert http.asked[0] == (
        "https://a.example/v1/embeddings",
        {"content-type": "application/json", "authorization": "Bearer sk-x"},
        {"model": "m", "input": ["kiwi"]},
    )


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([(401, {}, b"sk-x is wrong")], "it answered 401"),
        ([(429, {"retry-after": "30"}, b"")], "it answered 429"),
        ([(200, {}, b"<html>")], "its answer is no such thing"),
        ([(200, {}, {"data": []})], "0 embeddings of 1"),
    ],
)
async def test_what_a_provider_refuses_is_a_line_without_a_key(answers: list[Any], words: str) -> None:
    made, _ = remote(Http(*answers), Clock())
    with pytest.raises(Unavailable, match=words) as fault:
        await made.query("kiwi")
    assert "sk-x" not in str(fault.value)


async def test_gemini_and_voyage_are_told_what_a_text_is_for() -> None:
    http = Http((200, {}, {"embeddings": [{"values": [1.0]}, {"values": [2.0]}]}))
    assert await remote(http, Clock(), "gemini", "google")[0].passages(["a", "b"]) == [floats([1.0])] * 2
    url, _, body = http.asked[0]
    assert url == "https://a.example/v1/models/m:batchEmbedContents"
    assert [row["taskType"] for row in body["requests"]] == ["RETRIEVAL_DOCUMENT"] * 2
    http = Http((200, {}, ONE))
    await remote(http, Clock(), provider="voyage")[0].query("a")
    assert http.asked[0][2]["input_type"] == "query"


async def test_many_texts_go_in_several_requests() -> None:
    both = {"data": [{"index": at, "embedding": [1.0]} for at in reversed(range(64))]}
    http = Http((200, {}, both), (200, {}, ONE))
    assert len(await remote(http, Clock())[0].passages(["x"] * 65)) == 65
