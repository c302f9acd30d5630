"""What --fix changes, and that nothing else does."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from garra.checks.security.finding import Chmod, Narrow, catalog
from garra.checks.security.mend import NAME, fixes, lines, mend, told
from garra.config.paths import resolve
from garra.io.env import Environment
from tests.checks.security.standing import Built, build, fixtures
from tests.checks.security.test_checks import ids, judged

OPEN: dict[str, Any] = {
    "gateway": {"auth": {"mode": "none"}, "allowRealIpFallback": True},
    "tools": {"elevated": {"enabled": True, "allowFrom": {"telegram": ["*"]}}},
    "channels": {"telegram": {"groupPolicy": "open", "dmPolicy": "open", "allowFrom": ["*"]}},
}


def mended(built: Built) -> Any:
    env = Environment(built.env)
    return mend(resolve(env), env, fixes(judged(built).findings), 7)


def modes(folder: Path) -> dict[str, int]:
    every = [folder, *folder.rglob("*")]
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in every}


@pytest.mark.req("SEC-15")
def test_groups_and_modes_alone_are_changed(tmp_path: Path) -> None:
    opened = {".": "755", "garra.json": "644", "agents/main/sessions": "755", "extensions/x/manifest.toml": "644"}
    files = {"agents/main/sessions/a.jsonl": "{}", "extensions/x/manifest.toml": 'id = "x"\n'}
    built = build(tmp_path, {"config": OPEN, "files": files, "modes": opened})
    before, settings = modes(built.state), json.loads((built.state / "garra.json").read_text())
    done = mended(built)
    after = {path: mode for path, mode in modes(built.state).items() if path in before}
    changed = {path: (before[path], after[path]) for path in before if before[path] != after[path]}
    assert changed == {".": (0o755, 0o700), "garra.json": (0o644, 0o600), "agents/main/sessions": (0o755, 0o700)}
    settings["channels"]["telegram"]["groupPolicy"] = "allowlist"
    assert json.loads((built.state / "garra.json").read_text()) == settings
    assert not any(one.fault for one in done)
    assert "gateway.loopback_no_auth" in ids(judged(built))


@pytest.mark.req("SEC-15")
def test_each_change_is_written_down_with_its_way_back(tmp_path: Path) -> None:
    built = build(tmp_path, {"config": OPEN, "modes": {".": "755"}})
    done = mended(built)
    (row,) = map(json.loads, (built.state / "logs" / NAME).read_text().splitlines())
    undo = [one["undo"] for one in row["done"]]
    assert undo == [f"chmod 755 {built.state}", "garra config set channels.telegram.groupPolicy open"]
    assert told(done) == {"ok": True, "changes": row["done"], "errors": []}
    assert [line.split("\n")[0] for line in lines(done)] == [f"done: {one['what']}" for one in row["done"]]
    assert mended(built) == ()


def test_what_cannot_be_done_is_told(tmp_path: Path) -> None:
    built = build(tmp_path, {})
    env = Environment(built.env)
    (one,) = mend(resolve(env), env, (Chmod(str(tmp_path / "gone"), 0o600, 0o644),), 7)
    assert "No such file" in one.fault
    assert not (built.state / "logs").exists()
    assert told((one,))["ok"] is False
    assert next(lines((one,))).startswith("could not: ")


def test_what_the_catalog_calls_fixed_is_what_is_fixed(tmp_path: Path) -> None:
    for number, (check_id, both) in enumerate(fixtures().items()):
        report = judged(build(tmp_path / str(number), both["bad"]))
        kinds = [
            one for one in report.findings if one.check_id in (check_id, check_id.replace("<channel>", "telegram"))
        ]
        for one in kinds:
            assert bool(one.fixes) == catalog()[check_id].fixed
            assert all(isinstance(fix, Chmod | Narrow) for fix in one.fixes)
