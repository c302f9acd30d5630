"""A real XMPP server: prosody with rooms, archives and a store for files; and people who sit at it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import slixmpp

from tests.e2e.resident import free_port

PASSWORD = "pw"
ROOMS = "rooms.localhost"

FAULTS = """
local st = require "util.stanza";
module:hook("pre-message/bare", function(event)
  local stanza = event.stanza;
  local body = stanza:get_child_text("body") or "";
  if body == "hello passing" then
    event.origin.send(st.error_reply(stanza, "wait", "resource-constraint", "too much at once"));
  elseif body == "hello refused" then
    event.origin.send(st.error_reply(stanza, "auth", "forbidden", "not you"));
  elseif body == "hello gone" then
    event.origin.send(st.error_reply(stanza, "cancel", "item-not-found"));
  elseif body == "hello unsure" or body == "once" then
    event.origin.conn:destroy();
  else
    return;
  end
  return true;
end, 100);
"""


@contextmanager
def house() -> Iterator[Path]:
    """A folder that the server's own user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="xmpp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Prosody:
    """`prosody` on a free port; `users` have the password `pw`. `public`: rooms show real addresses to everybody."""

    def __init__(self, folder: Path, *users: str, tls: Path | None = None, public: bool = True, more: str = "") -> None:
        self.port, self.files, self.secure, self.folder = free_port(), free_port(), free_port(), folder
        accounts, plugins = folder / "data" / "localhost" / "accounts", folder / "plugins"
        accounts.mkdir(parents=True)
        plugins.mkdir()
        for user in users:
            (accounts / f"{user}.dat").write_text(f'return {{ ["password"] = "{PASSWORD}" }};\n')
        (plugins / "mod_faults.lua").write_text(FAULTS)
        if tls is not None:
            (folder / "cert.pem").write_bytes(tls.read_bytes())
        secured = f'ssl={{ key="{folder}/cert.pem", certificate="{folder}/cert.pem" }}' if tls else ""
        modules = ["roster", "saslauth", "disco", "ping", "pep", "carbons", "mam", "smacks", *(["tls"] if tls else [])]
        listed = ", ".join(f'"{one}"' for one in modules)
        self.file = folder / "prosody.cfg.lua"
        self.file.write_text(f"""
pidfile="{folder}/pid"; data_path="{folder}/data"; run_as_root=true; log={{ info="{folder}/log" }}
plugin_paths={{ "{plugins}" }}; authentication="internal_plain"; network_backend="epoll"
c2s_require_encryption={"true" if tls else "false"}; allow_unencrypted_plain_auth={"false" if tls else "true"}
modules_enabled={{ {listed} }}; modules_disabled={{ "s2s", {'""' if tls else '"tls"'} }}
interfaces={{ "127.0.0.1" }}; c2s_ports={{ {self.port} }}; c2s_direct_tls_ports={{ {self.secure if tls else ""} }}
http_ports={{ {self.files} }}; https_ports={{}}
http_interfaces={{ "127.0.0.1" }}; http_external_url="http://127.0.0.1:{self.files}/"; {secured}
default_archive_policy=true; archive_expires_after="never"
{more}
VirtualHost "localhost"
 modules_enabled={{ "faults" }}
Component "{ROOMS}" "muc"
 modules_enabled={{ "muc_mam" }}; muc_log_by_default=true; muc_room_locking=false
 muc_room_default_public_jids={"true" if public else "false"}
Component "upload.localhost" "http_file_share"
 http_host="127.0.0.1"
""")

    async def start(self) -> None:
        found = shutil.which("prosody") or "prosody"
        null = asyncio.subprocess.DEVNULL
        self.process = await asyncio.create_subprocess_exec(
            found, "-F", "--config", str(self.file), stdin=null, stdout=null, stderr=null
        )
        async with asyncio.timeout(15):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    await asyncio.sleep(0.05)
                else:
                    writer.transport.abort()
                    return

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


class Person:
    """Somebody with an account on a server without TLS. `heard` is (from, type, words) of each message to them."""

    def __init__(self, port: int, user: str) -> None:
        self.jid, self.port = f"{user}@localhost", port
        self.heard: list[tuple[str, str, str]] = []
        self.stanzas: list[Any] = []
        self._news = asyncio.Event()

    async def enter(self, *rooms: str, nick: str = "") -> Person:
        client: Any = slixmpp.ClientXMPP(self.jid, PASSWORD)
        client.enable_plaintext, client.enable_starttls, client.enable_direct_tls = True, False, False
        client.plugin["feature_mechanisms"].unencrypted_plain = True
        client.plugin["feature_mechanisms"].unencrypted_scram = True
        client.register_plugin("xep_0045")
        self.client = client
        started = asyncio.Event()
        client.add_event_handler("session_start", lambda _: started.set())
        client.add_event_handler("message", self._hear)
        client.add_event_handler("groupchat_message", lambda _: None)
        client.connect("127.0.0.1", self.port)
        async with asyncio.timeout(15):
            await started.wait()
        client.send_presence()
        for room in rooms:
            await client.plugin["xep_0045"].join_muc_wait(
                slixmpp.JID(room), nick or self.jid.split("@")[0], maxstanzas=0
            )
        return self

    def _hear(self, message: Any) -> None:
        self.stanzas.append(message)
        if message["body"]:
            self.heard.append((str(message["from"]), str(message["type"]), str(message["body"])))
        self._news.set()

    def tell(self, to: str, text: str, **more: Any) -> None:
        kind = "groupchat" if f"@{ROOMS}" in to and "/" not in to else "chat"
        message = self.client.make_message(mto=to, mbody=text, mtype=kind)
        for xml in more.get("payloads", ()):
            message.append(xml)
        if "id" in more:
            message["id"] = more["id"]
        message.send()

    def said(self, source: str) -> list[str]:
        """What a bare address, or somebody in a room, said."""
        return [text for sender, _, text in self.heard if sender.split("/")[0] == source or sender == source]

    async def until(self, found: Callable[[Person], object], timeout_s: float = 20.0) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not found(self):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(self.heard[-20:]) from None

    async def close(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(3):
                await self.client.disconnect(wait=1.0)
        self.client.abort()
        if (filters := vars(self.client).get("_run_out_filters")) is not None:
            filters.cancel()
        await asyncio.sleep(0)
