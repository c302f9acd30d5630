"""`agents.files.*` and `agents.workspace.*`: an agent's own files, through the one door to its folder."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import mimetypes
from typing import Annotated, Any

from msgspec import Meta

from garra.core.errors import Conflict, NotFound, ToolFailed, UserError
from garra.gateway.host import Host
from garra.gateway.method import ADMIN, READ, Caller, Method
from garra.gateway.params import Index, Limit, Name, Params
from garra.sdk.ports import Files, Found

NAMES = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md")
LARGEST = 4 << 20
LISTED = 500


class FilesList(Params, frozen=True):
    agent_id: Name


class FilesGet(Params, frozen=True):
    agent_id: Name
    name: Name


class FilesSet(Params, frozen=True):
    """`expected_hash` is the SHA-256, in hex, of the text that the caller saw."""

    agent_id: Name
    name: Name
    content: str
    expected_hash: Annotated[str, Meta(min_length=64, max_length=64)] | None = None


class WorkspaceList(Params, frozen=True):
    agent_id: Name
    path: str = ""
    offset: Index = 0
    limit: Limit = LISTED


class WorkspaceGet(Params, frozen=True):
    agent_id: Name
    path: Name


def _files(host: Host, agent_id: str) -> Files:
    return host.files(str(host.paths.workspace(agent_id, host.config)))


def _file(files: Files, name: str, *, content: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "path": f"{files.root}/{name}"}
    found = _stat(files, name)
    if found is None or found.kind != "file":
        return {**row, "missing": True}
    data = files.read(name, LARGEST)
    digest = hashlib.sha256(data).hexdigest()
    row |= {"missing": False, "size": found.size, "updatedAtMs": found.modified, "hash": digest}
    return {**row, "content": data.decode("utf-8", "replace")} if content else row


def _stat(files: Files, path: str) -> Found | None:
    try:
        return files.stat(path)
    except ToolFailed:
        return None


def _known(name: str) -> str:
    if name not in NAMES:
        raise UserError(f'unsupported file "{name[:80]}": one of {", ".join(NAMES)}')
    return name


async def files_list(host: Host, caller: Caller, params: FilesList) -> dict[str, Any]:
    """The files that shape an agent, those that are missing too."""
    agent_id = host.agent(params.agent_id)
    files = _files(host, agent_id)
    rows = await asyncio.to_thread(lambda: [_file(files, name, content=False) for name in NAMES])
    return {"agentId": agent_id, "workspace": files.root, "files": rows}


async def files_get(host: Host, caller: Caller, params: FilesGet) -> dict[str, Any]:
    agent_id = host.agent(params.agent_id)
    files = _files(host, agent_id)
    row = await asyncio.to_thread(_file, files, _known(params.name), content=True)
    return {"agentId": agent_id, "workspace": files.root, "file": row}


async def files_set(host: Host, caller: Caller, params: FilesSet) -> dict[str, Any]:
    """Replace one of them. Raises Conflict when it is no longer what the caller saw."""
    agent_id = host.agent(params.agent_id)
    files, name = _files(host, agent_id), _known(params.name)

    def put() -> dict[str, Any]:
        before = _file(files, name, content=False)
        if params.expected_hash and before.get("hash") != params.expected_hash.lower():
            raise Conflict(f"{name} has changed since it was read; read it again and repeat the change")
        files.write(name, params.content.encode("utf-8", "replace"))
        return _file(files, name, content=True)

    row = await _plainly(put)
    return {"ok": True, "agentId": agent_id, "workspace": files.root, "file": row}


async def _plainly(work: Any) -> Any:
    """Run in a thread; what a file door refuses, a person reads."""
    try:
        return await asyncio.to_thread(work)
    except ToolFailed as refused:
        raise UserError(refused.message) from None


async def workspace_list(host: Host, caller: Caller, params: WorkspaceList) -> dict[str, Any]:
    """One folder of the workspace; links are not shown, for they are not followed."""
    agent_id = host.agent(params.agent_id)
    files = _files(host, agent_id)
    path = params.path.strip("/")
    found: list[Found] = await _plainly(lambda: files.entries(path or "."))
    shown = [each for each in found if each.kind in ("file", "folder")]
    page = shown[params.offset : params.offset + min(params.limit, LISTED)]
    answer: dict[str, Any] = {
        "agentId": agent_id,
        "path": path,
        "entries": [_entry(path, each) for each in page],
        "totalEntries": len(shown),
        "offset": params.offset,
    }
    return {**answer, "parentPath": path.rpartition("/")[0]} if path else answer


def _entry(folder: str, found: Found) -> dict[str, Any]:
    name = found.path.rpartition("/")[2]
    kind = "directory" if found.kind == "folder" else "file"
    row = {"path": f"{folder}/{name}" if folder else name, "name": name, "kind": kind, "updatedAtMs": found.modified}
    return {**row, "size": found.size} if kind == "file" else row


async def workspace_get(host: Host, caller: Caller, params: WorkspaceGet) -> dict[str, Any]:
    agent_id = host.agent(params.agent_id)
    files = _files(host, agent_id)

    def get() -> dict[str, Any]:
        found = files.stat(params.path)
        if found is None or found.kind != "file":
            raise NotFound(f"no such file: {params.path[:200]}")
        return _content(params.path, found, files.read(params.path, LARGEST))

    return {"agentId": agent_id, "file": await _plainly(get)}


def _content(path: str, found: Found, data: bytes) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    row = {"path": path, "name": name, "size": found.size, "updatedAtMs": found.modified}
    mime = mimetypes.guess_type(name)[0]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        whole = base64.b64encode(data).decode()
        return {**row, "mimeType": mime or "application/octet-stream", "encoding": "base64", "content": whole}
    return {**row, "mimeType": mime or "text/plain", "encoding": "utf8", "content": text}


METHODS: tuple[Method, ...] = (
    Method("agents.files.list", READ, FilesList, files_list),
    Method("agents.files.get", READ, FilesGet, files_get),
    Method("agents.files.set", ADMIN, FilesSet, files_set),
    Method("agents.workspace.list", READ, WorkspaceList, workspace_list),
    Method("agents.workspace.get", READ, WorkspaceGet, workspace_get),
)
