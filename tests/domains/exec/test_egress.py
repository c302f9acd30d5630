"""The one way out of a closed network, tried from inside the sandbox with real programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from garra.core.approvals import Answer, Choice, Question
from garra.core.errors import ToolFailed
from garra.core.fence import Fence
from garra.core.ways import Ways, way
from garra.domains.exec.egress import Egress, Ports
from garra.domains.exec.supervisor import Commands
from garra.io.clock import SystemClock
from garra.io.http.door import GuardedHttp
from garra.sdk.ports import Launch, Ran
from tests.domains.exec.house import House, silent

pytestmark = pytest.mark.needs("bwrap")


@dataclass
class Owner:
    """Somebody who is asked, and answers when the test lets him."""

    says: Choice = "deny"
    asked: list[Question] = field(default_factory=list)
    granted: set[str] = field(default_factory=set)
    used: list[str] = field(default_factory=list)
    free: asyncio.Event = field(default_factory=asyncio.Event)
    waits_for: int = 0

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        if len(self.asked) == self.waits_for:
            self.free.set()
        await self.free.wait()
        if self.says == "allow-always":
            self.granted.add(question.covers)
        return Answer(self.says, "the owner")


class Site:
    """A web server on this machine, which says hello and remembers what it was sent."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._hear, "127.0.0.1", 0)

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heard.append(head)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()


@dataclass
class Scene:
    """A session's commands, the owner, and a server that is not on the open internet."""

    commands: Commands
    owner: Owner
    site: Site
    port: int

    def with_ways(self, *texts: str, asks: bool = True) -> Commands:
        listed = tuple(found for text in texts if (found := way(text)))
        return replace(self.commands, fence=Fence(ways=Ways(listed, asks)))

    async def run(self, commands: Commands, command: str) -> Ran:
        return await commands.run(Launch(command), silent)


@pytest.fixture
async def scene(house: House) -> AsyncIterator[Scene]:
    supervisor = house.boxed()
    if not (await supervisor.boxes.choose()).sandbox:
        pytest.skip("no sandbox can start here")
    owner, site = Owner(), Site()
    doors = GuardedHttp(guard=True), GuardedHttp()
    ports = Ports(
        *doors, owner, lambda question: question.covers in owner.granted, SystemClock(), house.tasks,
        lambda question: owner.used.append(question.covers),
    )  # fmt: skip
    supervisor.egress = Egress(ports, wait_s=5)
    server = await site.serve()
    port = server.sockets[0].getsockname()[1]
    yield Scene(house.commands(supervisor), owner, site, port)
    owner.free.set()
    server.close()
    await supervisor.close()
    for door in doors:
        await door.close()


def fetch(url: str) -> str:
    return f"curl -sS -m 8 -o - -w ' %{{http_code}}' {url} 2>&1"


async def test_a_listed_host_is_reached_and_named(scene: Scene) -> None:
    commands = scene.with_ways(f"127.0.0.1:{scene.port}")
    ran = await scene.run(commands, fetch(f"-x $http_proxy --noproxy '' http://127.0.0.1:{scene.port}/a?b"))
    assert ran.output == "hello 200"
    assert scene.site.heard[0].startswith(b"GET /a?b HTTP/1.1\r\n")
    assert b"proxy" not in scene.site.heard[0].lower()
    assert (ran.reached, ran.notes) == ((f"127.0.0.1:{scene.port}",), ())
    assert [mark.source for mark in ran.marks] == ["network"]
    tunnel = fetch(f"-p -x $http_proxy --noproxy '' http://127.0.0.1:{scene.port}/")
    assert (await scene.run(commands, tunnel)).output == "hello 200"


async def test_without_the_way_there_is_nothing_not_even_names(scene: Scene) -> None:
    commands = scene.with_ways(f"127.0.0.1:{scene.port}")
    direct = await scene.run(commands, f"curl -sS -m 3 --noproxy '*' http://127.0.0.1:{scene.port}/")
    assert direct.exit_code == 7
    assert (await scene.run(commands, "getent hosts example.org")).exit_code != 0
    closed = replace(scene.commands, fence=Fence())
    assert (await scene.run(closed, "echo x > /dev/tcp/127.0.0.1/47128")).exit_code != 0
    assert "proxy" not in (await scene.run(closed, "env")).output


async def test_a_host_that_is_not_listed_is_named_and_asked_about_once(scene: Scene) -> None:
    commands = scene.with_ways()
    scene.owner.says = "allow-once"
    both = f"{fetch('https://example.org/')}; {fetch('https://EXAMPLE.org.:443/x')}; {fetch('http://other.example/')}"
    scene.owner.waits_for = 2
    ran = await scene.run(commands, both)
    assert "CONNECT tunnel failed, response 403" in ran.output
    assert "other.example was refused" in ran.output
    assert "example.org was refused, and the owner was asked. The owner has allowed it: run the command again." in (
        ran.notes
    )
    assert {question.subject for question in scene.owner.asked} == {"example.org", "other.example"}
    first = next(question for question in scene.owner.asked if question.subject == "example.org")
    assert (first.kind, first.covers, first.once_ms) == ("egress", "host:example.org:web", 3_600_000)
    assert "may reach example.org (ports 80 and 443)" in first.remembers
    again = await scene.run(commands, fetch("https://example.org/"))
    assert len(scene.owner.asked) == 2
    assert "403" not in again.output


async def test_a_no_holds_and_is_not_asked_about_again(scene: Scene) -> None:
    commands = scene.with_ways()
    scene.owner.free.set()
    for _ in range(2):
        ran = await scene.run(commands, fetch("http://example.org/"))
        assert "403" in ran.output
        assert "has said no" in ran.notes[0]
    assert len(scene.owner.asked) == 1


async def test_a_word_that_is_taken_back_holds_no_longer(scene: Scene) -> None:
    commands = scene.with_ways()
    scene.owner.says = "allow-always"
    scene.owner.free.set()
    await scene.run(commands, fetch("http://example.org/"))
    assert "403" not in (await scene.run(commands, fetch("http://example.org/"))).output
    scene.owner.granted.clear()
    scene.owner.says = "deny"
    assert "403" in (await scene.run(commands, fetch("http://example.org/"))).output
    assert len(scene.owner.asked) == 2


async def test_only_the_first_command_that_wants_a_host_waits_for_the_word(scene: Scene) -> None:
    commands = scene.with_ways()
    first = await commands.run(Launch(f"{fetch('http://example.org/')}; sleep 30", yield_ms=2_000), silent)
    assert first.status == "running"
    second = await scene.run(commands, fetch("http://example.org/"))
    assert "the owner is being asked" in second.notes[0]
    assert len(scene.owner.asked) == 1
    scene.owner.free.set()
    assert first.session
    await commands.kill(first.session)


async def test_where_nobody_is_to_be_asked_nobody_is(scene: Scene) -> None:
    ran = await scene.run(scene.with_ways("pypi.org", asks=False), fetch("http://example.org/"))
    assert "not among the hosts that main may reach" in ran.notes[0]
    assert not scene.owner.asked


async def test_what_is_not_on_the_open_internet_cannot_be_allowed_by_a_tap(scene: Scene) -> None:
    scene.owner.says = "allow-always"
    scene.owner.free.set()
    commands = scene.with_ways("*", f"*:{scene.port}")
    forms = (
        f"127.0.0.1:{scene.port}", f"127.1:{scene.port}", f"0x7f000001:{scene.port}", f"2130706433:{scene.port}",
        f"[::1]:{scene.port}", f"[::ffff:127.0.0.1]:{scene.port}", "169.254.169.254", "[fd00:ec2::254]",
        f"localhost:{scene.port}", f"localhost.:{scene.port}", "10.0.0.1", "0.0.0.0",
    )  # fmt: skip
    for form in forms:
        ran = await scene.run(commands, fetch(f"-g -x $http_proxy --noproxy '' http://{form}/"))
        assert "hello" not in ran.output, form
        assert ran.reached == (), form
    asked = [question.subject for question in scene.owner.asked]
    assert asked == []
    assert scene.site.heard == []


async def test_a_turn_that_read_text_from_outside_asks_about_listed_hosts_too(scene: Scene) -> None:
    listed = scene.with_ways(f"127.0.0.1:{scene.port}", "example.org")
    marked = replace(listed.guarded(("SOUL.md",), ask=False), behalf=listed.behalf)
    scene.owner.free.set()
    ran = await scene.run(marked, fetch("http://example.org/"))
    assert "403" in ran.output
    assert scene.owner.asked[0].covers == "host:example.org:web:marked"
    assert any("text from outside" in line for line in scene.owner.asked[0].why)


async def test_the_relay_answers_no_nonsense_and_holds_only_so_much(scene: Scene) -> None:
    talk = (
        "import socket\n"
        "def say(data):\n"
        "    s = socket.create_connection(('127.0.0.1', 47128), 5); s.sendall(data)\n"
        "    try:\n        return s.recv(200)\n    except OSError:\n        return b''\n"
        "for data in (b'GET / HTTP/1.1\\r\\n\\r\\n', b'CONNECT x HTTP/1.1\\r\\n\\r\\n', b'\\x16\\x03\\r\\n\\r\\n',\n"
        "             b'CONNECT a:99999 HTTP/1.1\\r\\n\\r\\n', b'GET http://a:b/ HTTP/1.1\\r\\n\\r\\n',\n"
        "             b'CONNECT exa\\x00mple:443 HTTP/1.1\\r\\n\\r\\n', b'x' * 70000):\n"
        "    print(say(data)[:12])\n"
        "held = [socket.create_connection(('127.0.0.1', 47128), 5) for _ in range(90)]\n"
        "print('held', len(held))\n"
    )
    commands = scene.with_ways()
    ran = await commands.run(Launch(f"cat > talk.py <<'END'\n{talk}END\npython3 talk.py"), silent)
    lines = ran.output.splitlines()
    assert lines[-1] == "held 90"
    assert all(line in ("b'HTTP/1.1 403'", "b''") for line in lines[:-1]), ran.output
    assert not scene.owner.asked


async def test_a_background_command_keeps_its_way_until_it_ends(scene: Scene) -> None:
    commands = scene.with_ways(f"127.0.0.1:{scene.port}")
    command = f"sleep 0.4; {fetch(f'-x $http_proxy --noproxy {chr(39) * 2} http://127.0.0.1:{scene.port}/')}"
    ran = await commands.run(Launch(command, background=True), silent)
    assert ran.session
    while (now := await commands.poll(ran.session, 2_000)).status == "running":
        pass
    assert now.reached == (f"127.0.0.1:{scene.port}",)


async def test_a_fault_in_the_settings_stops_every_command(scene: Scene) -> None:
    commands = replace(scene.commands, fence=Fence(fault="binds: /etc: /etc is the system's"))
    with pytest.raises(ToolFailed, match="/etc is the system's"):
        await scene.run(commands, "true")
