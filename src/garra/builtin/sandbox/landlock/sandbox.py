"""Shuts a command in with the kernel's Landlock rules and a seccomp filter: no program to install, no namespace.

It is the second choice. It hides less than bubblewrap: names and sizes of files can be seen, other processes can be
listed, and the mode of files the gateway's user owns can be changed; their content cannot be read or written.
"""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from garra.core import syscalls
from garra.sdk.sandbox import Availability, Plan, Probe, Wrapped

LAUNCH = str(Path(__file__).parents[1] / "launch.py")
REMEDY = "use a Linux kernel of 6.2 or newer with Landlock, or install bubblewrap"
READABLE = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/alternatives", "/etc/ca-certificates",
    "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/timezone", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
    "/etc/protocols", "/etc/services", "/etc/terminfo", "/etc/python3", "/etc/perl", "/etc/fonts", "/etc/magic",
    "/etc/os-release", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems",
    "/proc/loadavg", "/proc/uptime",
)  # fmt: skip
ONLINE = ("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts")


class Landlock:
    """`sdk.sandbox.Sandbox` by Landlock and seccomp."""

    name = "landlock"
    hides = False

    def __init__(self, *, probe: Probe, compiled: Callable[[str], str] = str) -> None:
        self._probe, self._compiled = probe, compiled
        self._launch = LAUNCH

    async def available(self) -> Availability:
        if sys.platform != "linux" or platform.machine() not in syscalls.MACHINES:
            return Availability(False, "Landlock is for Linux on x86_64 and aarch64", REMEDY)
        self._launch = await asyncio.to_thread(self._compiled, LAUNCH)
        probed = await self._probe(self.wrap(Plan(("/bin/sh", "-c", "exit 0"), "/usr", "/usr")).argv)
        if probed.code == 0:
            return Availability(True)
        said = probed.output.strip().splitlines()[-1] if probed.output.strip() else "it did not start"
        return Availability(False, said, REMEDY)

    def wrap(self, plan: Plan) -> Wrapped:
        temporary = f"{plan.workspace}/.tmp"
        options = [
            *(f"read={path}" for path in READABLE),
            *(f"read={path}" for path in ONLINE if plan.network),
            *(f"device={path}" for path in DEVICES),
            *_workspace(plan, temporary),
            *([] if plan.network else ["offline"]),
            f"filter={syscalls.program(platform.machine(), syscalls.INTERNET if plan.network else ()).hex()}",
        ]
        argv = (sys.executable, "-I", "-S", self._launch, *options, "--", *plan.argv)
        return Wrapped(argv, {**plan.env, "TMPDIR": temporary}, plan.workdir, closed=False)


def _workspace(plan: Plan, temporary: str) -> Sequence[str]:
    if plan.workspace == "/usr":  # the trial run's
        return ()
    if plan.read_only:
        return f"tmp={temporary}", f"read={plan.workspace}", f"write={temporary}"
    return f"tmp={temporary}", f"write={plan.workspace}"
