"""Shuts a command into a container of its own, by Docker or Podman, where the configuration names the engine.

A container is made for each command and gone with it. Its root is read-only, it holds no capability and can gain no
right, its network is off unless the owner names one, processes and memory are bounded. The workspace stands at its own
path. Everything that people may choose comes after what they may not undo, and after `--` where it could be an option.
"""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from garra.builtin.sandbox.engines.standing import MARK, standing
from garra.core.containers import Container
from garra.core.errors import ToolFailed
from garra.sdk.sandbox import Availability, Chore, Plan, Probe, Probed, Wrapped

FOLDERS = ("/usr/bin", "/usr/local/bin", "/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin")
CLIENT = (
    "HOME", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST", "CONTAINERS_CONF", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
)  # fmt: skip
"""Of the owner's environment, what tells the engine's client where the engine is. The command gets none of it."""
SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SEARCHED = ("PATH", "TMPDIR")
"""What the image knows better than we do."""
IMAGE = "garra-sbx"
"""How images are called that a setup made; the digest of what made them is behind the colon."""
SETUP_S, ASKED_S = 600.0, 20.0
"""Seconds that a setup may take, and an answer of the engine."""


class Docker:
    """`sdk.sandbox.Sandbox` by the `docker` command. `engine` is the owner's environment; `programs` are the places
    where the client may be, by absolute path.
    """

    name = "docker"
    hides = False
    named = True

    def __init__(
        self, *, probe: Probe, engine: Mapping[str, str], chore: Chore | None = None, programs: Sequence[str] = ()
    ) -> None:
        self._probe = probe
        self._chore: Chore = chore or (lambda argv, _: probe(argv))
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._swept = False
        self._programs = tuple(programs) or tuple(f"{folder}/{self.name}" for folder in FOLDERS)
        self._program = self._programs[0]
        self._env = {"PATH": SAFE_PATH, **{name: engine[name] for name in CLIENT if engine.get(name)}}

    async def available(self) -> Availability:
        remedy = f"install {self.name} and start its engine, or leave agents.defaults.sandbox.backend out"
        found = await asyncio.to_thread(lambda: [path for path in self._programs if os.access(path, os.X_OK)])
        if not found:
            return Availability(False, f"{self.name} is not installed", remedy)
        self._program = found[0]
        probed = await self._probe(self._call("version"))
        if probed.code == 0:
            return Availability(True)
        said = probed.output.strip().splitlines()[-1] if probed.output.strip() else "it does not answer"
        return Availability(False, f"{self.name}: {said}", remedy)

    def _call(self, *words: str) -> tuple[str, ...]:
        """The client, with its own environment and no more."""
        return "/usr/bin/env", "-i", *(f"{name}={value}" for name, value in self._env.items()), self._program, *words

    async def asked(self, *words: str, timeout_s: float = ASKED_S) -> Probed:
        """What the engine answers to `words`; call `available` first."""
        return await self._chore(self._call(*words), timeout_s)

    async def prepare(self, plan: Plan) -> Plan:
        """Remove what a gateway that ended hard has left, and have the image that the setup makes."""
        container = plan.container
        if container is None:
            return plan
        async with self._turns[""]:
            if not self._swept:
                self._swept = True
                await self._sweep(container.installation)
        if not container.setup:
            return plan
        image = f"{IMAGE}:{container.digest}"
        async with self._turns[image]:  # `sandbox recreate` may have removed it since the last command
            if (await self.asked("image", "inspect", "--format", "{{.Id}}", image)).code != 0:
                await self._set_up(plan, container, image)
        return replace(plan, container=replace(container, prepared=image))

    async def _sweep(self, installation: str) -> None:
        for left in await standing(self.asked, installation):
            if not left.process or not await asyncio.to_thread(_lives, left.process):
                await self.asked("rm", "--force", "--volumes", "--", left.id)

    async def _set_up(self, plan: Plan, container: Container, image: str) -> None:
        name = f"{container.prefix}setup-{container.digest}"
        alone = replace(plan, read_only=True, env={}, argv=("/bin/sh", "-lc", container.setup), terminal=False)
        writable = replace(container, read_only_root=False)
        await self.asked("rm", "--force", "--volumes", "--", name)
        try:
            made = await self.asked(*self._run(alone, writable, name, kept=True), timeout_s=SETUP_S)
            if made.code != 0:
                said = made.output.strip().splitlines()
                why = "took longer than ten minutes" if made.code is None else f"ended with {made.code}"
                raise ToolFailed(f"No command was run: docker.setupCommand {why}: {(said or ['it said nothing'])[-1]}")
            kept = await self.asked("commit", "--", name, image, timeout_s=SETUP_S)  # its labels are kept with it
            if kept.code != 0:
                raise ToolFailed(
                    f"No command was run: {self.name} did not keep what the setup made: {kept.output[-200:]}"
                )
        finally:
            await asyncio.shield(self.asked("rm", "--force", "--volumes", "--", name))

    def wrap(self, plan: Plan) -> Wrapped:
        container = plan.container or Container()
        name = f"{container.prefix}{plan.name or 'trial'}"
        argv = (self._program, *self._run(plan, container, name))
        undo = (self._program, "rm", "--force", "--", name)
        return Wrapped(argv, self._env, "/", closed=True, undo=undo)

    def _run(self, plan: Plan, container: Container, name: str, *, kept: bool = False) -> tuple[str, ...]:
        """The words of `run`. An image's own entry point and health check are left out: what was judged is what runs.

        `kept`: the container stays when it has ended.
        """
        return (
            "run",
            *(() if kept else ("--rm",)),
            "--init",
            "--interactive",
            *(("--tty",) if plan.terminal else ()),
            "--pull", "never",
            "--name", name,
            "--hostname", "garra",
            "--entrypoint", "",
            "--no-healthcheck",
            *(part for mark in _marks(container) for part in ("--label", mark)),
            "--label", f"{MARK}.process={os.getpid()}",
            *self._hardened(plan, container),
            *self._bounded(plan, container),
            *self._seen(plan, container),
            *self._told(plan, container),
            "--workdir", plan.workdir,
            "--",
            container.prepared or container.image,
            *plan.argv,
        )  # fmt: skip

    def _hardened(self, plan: Plan, container: Container) -> Iterator[str]:
        yield from (flag for name in container.cap_drop or ("ALL",) for flag in ("--cap-drop", name))
        yield from ("--security-opt", "no-new-privileges")
        if container.seccomp_profile:
            yield from ("--security-opt", f"seccomp={container.seccomp_profile}")
        if container.apparmor_profile:
            yield from ("--security-opt", f"apparmor={container.apparmor_profile}")
        if container.read_only_root:
            yield "--read-only"
        yield from ("--network", "bridge" if plan.network and container.network == "none" else container.network)
        yield from ("--user", container.user or f"{os.getuid()}:{os.getgid()}", *self._ids())
        yield from ("--ipc", "private")

    def _ids(self) -> tuple[str, ...]:
        """What else makes files of the workspace ours inside, and what is made inside ours outside."""
        return ()

    def _bounded(self, plan: Plan, container: Container) -> Iterator[str]:
        yield from ("--pids-limit", str(container.pids_limit))
        amounts = {"--memory": container.memory, "--memory-swap": container.memory_swap, "--cpus": container.cpus}
        yield from (part for flag, value in amounts.items() if value for part in (flag, value))
        yield from ("--ulimit", "core=0")
        if "NOFILE" in plan.limits:
            yield from ("--ulimit", f"nofile={plan.limits['NOFILE']}")
        yield from (part for value in container.ulimits for part in ("--ulimit", value))
        if container.gpus:
            yield from ("--gpus", container.gpus)

    def _seen(self, plan: Plan, container: Container) -> Iterator[str]:
        yield from (part for place in container.tmpfs for part in ("--tmpfs", place))
        mode = ",readonly" if plan.read_only else ""
        yield from ("--mount", _mount(plan.workspace, plan.workspace) + mode)
        for bind in plan.binds:
            yield from ("--mount", _mount(bind.source, bind.target) + ("" if bind.writable else ",readonly"))
        for path in plan.fixed:
            yield from ("--mount", _mount(path, path) + ",readonly")

    def _told(self, plan: Plan, container: Container) -> Iterator[str]:
        yield from (part for address in container.dns for part in ("--dns", address))
        yield from (part for host in container.extra_hosts for part in ("--add-host", host))
        env = {**{name: value for name, value in plan.env.items() if name not in SEARCHED}, **container.env}
        yield from (part for name, value in env.items() for part in ("--env", f"{name}={value}"))


def _marks(container: Container) -> tuple[str, ...]:
    """The labels by which containers and images are found again."""
    told = {
        "installation": container.installation, "scope": container.scope, "session": container.session,
        "image": container.image, "config": container.digest,
    }  # fmt: skip
    return tuple(f"{MARK}.{name}={value}" for name, value in told.items())


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _mount(source: str, target: str) -> str:
    """The value of `--mount`, which is a line of CSV: a path with a comma or a quote is quoted there."""
    return ",".join(("type=bind", _quoted(f"source={source}"), _quoted(f"target={target}")))


def _quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if any(sign in field for sign in ',"\n') else field


class Podman(Docker):
    """The same by the `podman` command, which keeps the owner's ids in a container without root."""

    name = "podman"

    def _ids(self) -> tuple[str, ...]:
        return () if os.getuid() == 0 else ("--userns", "keep-id")
