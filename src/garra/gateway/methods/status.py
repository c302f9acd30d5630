"""`status` and `system.info`: how the gateway and its machine are; `health` facts for the one that gathers them."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

from garra.domains.sessions.rows import Query
from garra.domains.sessions.session import Session
from garra.gateway import work
from garra.gateway.host import Host
from garra.gateway.method import READ, Caller, Method
from garra.gateway.methods import channels, messages
from garra.gateway.params import Nothing, Params
from garra.gateway.rows import Rows, defaults
from garra.runs.switch import Switch

RECENT = 10
SHORT = 5


class Status(Params, frozen=True):
    include_channel_summary: bool = True
    include_cli_projection: bool = False


def rss() -> int:
    """Bytes of memory in use now; where the system does not say, the most there ever was. Blocks."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


async def status(host: Host, caller: Caller, params: Status) -> dict[str, Any]:
    page = await host.sessions.list(Query(archived=None, limit=RECENT))
    rows = host.rows()
    recent = [_recent(host, session, rows) for session in page.sessions]
    agents = host.config.agents
    shown = defaults(host.config, host.models, agents.default_id())
    answer: dict[str, Any] = {
        "runtimeVersion": host.version,
        "heartbeat": {"defaultAgentId": agents.default_id(), "agents": []},
        "channelSummary": [],
        "queuedSystemEvents": [],
        "sessions": {
            "paths": [str(host.paths.db)],
            "count": page.total,
            "defaults": {"model": shown["model"], "contextTokens": shown["contextTokens"]},
            "recent": recent,
            "byAgent": [await _by_agent(host, agent_id, rows) for agent_id in agents.ids()],
        },
        "messages": await messages.unfinished(host),
        "paused": isinstance(switch := host.more.get(work.SWITCH), Switch) and switch.paused,
        "links": _links(host),
        "processMemory": {"rssBytes": await asyncio.to_thread(rss)},
        "pid": os.getpid(),
        "activeRuns": len([run for run in host.runs.every() if run.state != "ended"]),
        "uptimeMs": host.clock.now_ms() - host.started_at,
    }
    if params.include_cli_projection:
        listed = [{"id": agent_id} for agent_id in agents.ids()]
        who = {"defaultId": agents.default_id(), "ownership": "sole", "selectionRequired": False, "rows": listed}
        answer["cliProjection"] = {
            "agents": who,
            "updateChannel": None,
            "memoryPlugin": _memory(host),
        }
    return answer


def _memory(host: Host) -> dict[str, Any]:
    """Which memory there is: the box's, or none."""
    config = host.config
    slot = config.plugins.slots.memory or "memory-core"
    return {"enabled": slot != "none" and config.memory.search.enabled, "slot": slot}


def _links(host: Host) -> dict[str, Any]:
    """How many chat accounts are on and connected, and in a line each why the others are not."""
    accounts = channels.listed(host)["channelAccounts"]
    rows = [(name, row) for name, listed in accounts.items() for row in listed if row["enabled"]]
    troubles = [
        {"channel": name, "accountId": row["accountId"], "message": why} for name, row in rows if (why := _apart(row))
    ]
    return {"accounts": len(rows), "connected": sum(row["connected"] for _, row in rows), "troubles": troubles}


def _apart(row: dict[str, Any]) -> str:
    """Why an account is not connected; empty when it is, or has only begun."""
    if row["connected"] or (row["statusState"] == "starting" and "lastError" not in row):
        return ""
    alone = "it is stopped" if row["configured"] else "it has no credential"
    return str(row.get("lastError") or (alone if row["statusState"] == "stopped" else "the link does not answer"))


async def _by_agent(host: Host, agent_id: str, rows: Rows) -> dict[str, Any]:
    page = await host.sessions.list(Query(agent_id=agent_id, archived=None, limit=RECENT))
    recent = [_recent(host, session, rows) for session in page.sessions]
    return {"agentId": agent_id, "path": str(host.paths.sessions(agent_id)), "count": page.total, "recent": recent}


def _recent(host: Host, session: Session, rows: Rows) -> dict[str, Any]:
    row = rows.row(session, titles=False, last=False)
    total, window = row.get("totalTokens"), row["contextTokens"]
    left = (
        {"remainingTokens": max(0, window - total), "percentUsed": round(100 * total / window)}
        if total and window
        else {}
    )
    kept = (
        "inputTokens",
        "outputTokens",
        "cacheRead",
        "cacheWrite",
        "totalTokens",
        "totalTokensFresh",
        "contextTokens",
    )
    return {
        "agentId": session.agent_id,
        "key": session.key,
        "kind": row["kind"],
        "sessionId": session.session_id,
        "updatedAt": session.updated_at,
        "age": max(0, host.clock.now_ms() - session.updated_at),
        "model": row["model"],
        "selectedModel": f"{row['modelProvider']}/{row['model']}" if row["model"] else None,
        **{name: row[name] for name in kept if name in row},
        **left,
        "flags": [f"id:{session.session_id}"],
    }


async def health(host: Host) -> dict[str, Any]:
    """What `health` tells of agents, sessions and channels."""
    agents = host.config.agents
    listed = []
    for agent_id in agents.ids():
        default = agent_id == agents.default_id()
        listed.append({"agentId": agent_id, "isDefault": default, "sessions": await _short(host, agent_id)})
    told = channels.listed(host)
    return {
        "plugins": {"loaded": [], "errors": [], "unavailable": []},
        "configReload": {"hotReloadStatus": "off" if host.config.gateway.reload.mode == "off" else "active"},
        **{name: told[name] for name in ("channels", "channelOrder", "channelLabels")},
        "heartbeatSeconds": 0,
        "defaultAgentId": agents.default_id(),
        "agents": listed,
        "sessions": await _short(host, None),
    }


async def _short(host: Host, agent_id: str | None) -> dict[str, Any]:
    page = await host.sessions.list(Query(agent_id=agent_id, archived=None, limit=SHORT))
    now = host.clock.now_ms()
    recent = [{"key": s.key, "updatedAt": s.updated_at, "age": max(0, now - s.updated_at)} for s in page.sessions]
    return {"path": str(host.paths.db), "count": page.total, "recent": recent}


async def system(host: Host, caller: Caller, params: Nothing) -> dict[str, Any]:
    return await asyncio.to_thread(_system, host)


def _system(host: Host) -> dict[str, Any]:
    name = socket.gethostname()
    place = host.paths.state if host.paths.state.exists() else Path("/")
    disk = shutil.disk_usage(place)
    pages = {key: os.sysconf(f"SC_{key}") for key in ("PAGE_SIZE", "PHYS_PAGES", "AVPHYS_PAGES")}
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "machineName": name,
        "hostname": name,
        "platform": sys.platform,
        "release": platform.release(),
        "arch": machine,
        "osLabel": f"{platform.system()} {platform.release()}",
        "port": host.port,
        "pythonVersion": platform.python_version(),
        "pid": os.getpid(),
        "uptimeMs": host.clock.now_ms() - host.started_at,
        "cpuCount": os.cpu_count() or 1,
        "loadAverage": list(os.getloadavg()),
        "memoryTotalBytes": pages["PAGE_SIZE"] * pages["PHYS_PAGES"],
        "memoryFreeBytes": pages["PAGE_SIZE"] * pages["AVPHYS_PAGES"],
        "processMemory": {"rssBytes": rss()},
        "disks": [{"path": str(place), "totalBytes": disk.total, "availableBytes": disk.free}],
        "diskTotalBytes": disk.total,
        "diskAvailableBytes": disk.free,
        "diskPath": str(place),
    }


METHODS: tuple[Method, ...] = (
    Method("status", READ, Status, status),
    Method("system.info", READ, Nothing, system),
)
