"""Shuts a command in with bubblewrap: namespaces of its own, an empty root, no capability.

The command's user is mapped to ours: what it writes in the workspace is ours to read, and the workspace is its to
write, whoever runs the gateway. So where that is root, the command still owns what root owns, without root's powers:
/proc is read-only, because the kernel's settings below it ask for no more than owning them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from garra.sdk.sandbox import Availability, Plan, Probe, Wrapped

USUAL = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap")
REMEDY = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
READABLE = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone", "/etc/mime.types",
    "/etc/nsswitch.conf", "/etc/protocols", "/etc/services", "/etc/terminfo", "/etc/python3", "/etc/perl",
    "/etc/fonts", "/etc/magic", "/etc/os-release", "/nix/store",
)  # fmt: skip
ONLINE = ("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf")
OWN = Path(__file__).with_name("etc")
INSIDE = "1000"


class Bubblewrap:
    """`sdk.sandbox.Sandbox` by bubblewrap. `programs` are the places where it may be, by absolute path."""

    name = "bwrap"
    hides = True

    def __init__(self, *, probe: Probe, programs: Sequence[str] = USUAL) -> None:
        self._probe = probe
        self._programs = programs
        self._program = programs[0] if programs else ""
        self._nested = True
        self._system: Sequence[str] = ()

    async def available(self) -> Availability:
        found = await asyncio.to_thread(self._look)
        if not found:
            return Availability(False, "bubblewrap is not installed", REMEDY)
        self._program = found[0]
        said = ""
        for self._nested in (True, False):  # versions before 0.8 cannot forbid namespaces inside
            probed = await self._probe(self.wrap(Plan(("/bin/sh", "-c", "exit 0"), "/tmp", "/tmp")).argv)
            if probed.code == 0:
                return Availability(True)
            said = probed.output.strip().splitlines()[-1] if probed.output.strip() else "it did not start"
        return Availability(False, f"bubblewrap cannot start here: {said}", _remedy(said))

    def _look(self) -> list[str]:
        """Learn how this machine's root is laid out, and where the program is."""
        self._system = _system()
        return [program for program in self._programs if os.access(program, os.X_OK)]

    def wrap(self, plan: Plan) -> Wrapped:
        argv = (
            self._program,
            "--unshare-all",
            "--unshare-user",
            *(("--disable-userns",) if self._nested else ()),
            *(("--share-net",) if plan.network else ()),
            "--die-with-parent",
            "--cap-drop", "ALL",
            "--uid", INSIDE,
            "--gid", INSIDE,
            "--hostname", "garra",
            *self._system,
            *(flag for path in READABLE for flag in ("--ro-bind-try", path, path)),
            *(flag for path in ONLINE if plan.network for flag in ("--ro-bind-try", path, path)),
            "--ro-bind", str(OWN / "passwd"), "/etc/passwd",
            "--ro-bind", str(OWN / "group"), "/etc/group",
            "--proc", "/proc",
            "--remount-ro", "/proc",
            "--dev", "/dev",
            "--tmpfs", "/tmp",
            "--bind", plan.workspace, plan.workspace,
            *(flag for path in plan.fixed for flag in ("--ro-bind", path, path)),
            *_closing(plan),
            "--remount-ro", "/",
            "--chdir", plan.workdir,
            "--clearenv",
            *(flag for name, value in plan.env.items() for flag in ("--setenv", name, value)),
            "--",
            *plan.argv,
        )  # fmt: skip
        return Wrapped(argv, {}, "/", closed=True)


def _closing(plan: Plan) -> list[str]:
    """Nothing where the closed places are. The folders on the way are mounts too, and come first: a folder that is
    none could be moved, and with it what lies below."""
    root = plan.workspace.rstrip("/")
    places = [path.rstrip("/")[len(root) + 1 :].split("/") for path in plan.closed]
    ways = sorted({tuple(names[:depth]) for names in places for depth in range(1, len(names))})
    flags = [flag for way in ways for flag in ("--bind", *["/".join((root, *way))] * 2)]
    for path in plan.closed:
        place = path.rstrip("/")
        flags += ["--tmpfs", place, "--remount-ro", place] if path != place else ["--ro-bind", "/dev/null", place]
    return flags


def _system() -> list[str]:
    """/usr, and what leads to it from the root: links where they are links, else the folders themselves."""
    flags = ["--ro-bind", "/usr", "/usr"]
    for name in LINKS:
        path = f"/{name}"
        if os.path.islink(path):  # noqa: PTH114
            flags += ["--symlink", f"usr/{name}", path]
        else:
            flags += ["--ro-bind-try", path, path]
    return flags


def _remedy(said: str) -> str:
    if "userns" in said or "namespace" in said or "uid map" in said or "Operation not permitted" in said:
        return "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, or an AppArmor profile for bwrap)"
    return REMEDY
