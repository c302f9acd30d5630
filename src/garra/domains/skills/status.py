"""The skills of an agent as rows for programs, in the shape of `skills.status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from garra.core.bundle import Changes
from garra.core.skills import Judged, Needs, World, lacks
from garra.domains.skills.records import Record

SOURCES: Final = {
    "workspace": "openclaw-workspace",
    "managed": "openclaw-managed",
    "bundled": "openclaw-bundled",
    "extra": "openclaw-extra",
}


def row(judged: Judged, world: World, off: frozenset[str]) -> dict[str, Any]:
    """One skill."""
    skill, lacking = judged.skill, lacks(judged.skill, world)
    said = {"emoji": skill.emoji, "homepage": skill.homepage, "primaryEnv": skill.primary_env}
    return {
        "name": skill.name,
        "description": skill.description,
        "source": SOURCES[skill.place],
        "bundled": skill.place == "bundled",
        "filePath": skill.path,
        "baseDir": str(Path(skill.path).parent),
        "skillKey": skill.key,
        **{name: text for name, text in said.items() if text},
        "always": skill.always,
        "disabled": bool(off & {skill.key, skill.name}),
        "blockedByAllowlist": False,
        "blockedByAgentFilter": world.only is not None and skill.name not in world.only,
        "eligible": judged.eligible,
        "platformIncompatible": bool(lacking.os),
        "modelVisible": judged.eligible and not skill.hidden,
        "userInvocable": False,
        "commandVisible": False,
        "requirements": _needs(skill.needs),
        "missing": _needs(Needs(os=lacking.os) if skill.always else lacking),
        "configChecks": [{"path": path, "satisfied": path not in lacking.config} for path in skill.needs.config],
        "install": [
            {"id": hint.id, "kind": hint.kind, "label": hint.label, "bins": list(hint.bins)} for hint in skill.hints
        ],
        "reasons": list(judged.reasons),
    }


def _needs(needs: Needs) -> dict[str, list[str]]:
    return {
        "bins": list(needs.bins),
        "anyBins": list(needs.any_bins),
        "env": list(needs.env),
        "config": list(needs.config),
        "os": list(needs.os),
    }


def installed(record: Record, changes: Changes) -> dict[str, Any]:
    """What is known of how it came here."""
    found = {
        "origin": record.origin,
        "kind": record.kind,
        "version": record.version or None,
        "archiveSha256": record.archive or None,
        "installedAt": record.installed_at,
        "updatedAt": record.updated_at,
        "files": len(record.files),
    }
    return {**found, "changed": _changed(changes)}


def _changed(changes: Changes) -> dict[str, list[str]] | None:
    if not changes:
        return None
    return {"added": list(changes.added), "changed": list(changes.changed), "gone": list(changes.gone)}


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What `skills check` says: the names by what keeps them from use."""
    every = list(rows)

    def named(fits: str) -> list[str]:
        return [str(one["name"]) for one in every if one[fits]]

    missing = [one for one in every if any(one["missing"].values())]
    hidden = [str(one["name"]) for one in every if one["eligible"] and not one["modelVisible"]]
    changed = [one for one in every if (one.get("installed") or {}).get("changed")]
    return {
        "summary": {
            "total": len(every),
            "eligible": len(named("eligible")),
            "modelVisible": len(named("modelVisible")),
            "commandVisible": 0,
            "disabled": len(named("disabled")),
            "blocked": 0,
            "agentFiltered": len(named("blockedByAgentFilter")),
            "notInjected": len(hidden),
            "missingRequirements": len(missing),
            "changedSinceInstall": len(changed),
        },
        "eligible": named("eligible"),
        "modelVisible": named("modelVisible"),
        "commandVisible": [],
        "disabled": named("disabled"),
        "blocked": [],
        "agentFiltered": named("blockedByAgentFilter"),
        "notInjected": [{"name": name, "reason": "disable-model-invocation"} for name in hidden],
        "missingRequirements": [
            {"name": one["name"], "missing": one["missing"], "install": one["install"]} for one in missing
        ],
        "changedSinceInstall": [{"name": one["name"], **one["installed"]["changed"]} for one in changed],
    }
