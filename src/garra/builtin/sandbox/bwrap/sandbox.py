"""Shuts a command in with bubblewrap: namespaces of its own, an empty root, no capability.

The command's user is mapped to ours: what it writes in the workspace is ours to read, and the workspace is its to
write, whoever runs the gateway. So where that is root, the command still owns what root owns, without root's powers:
/proc is read-only, because the kernel's settings below it ask for no more than owning them.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from garra.core import syscalls
from garra.core.containers import Bind
from garra.core.value import frozen
from garra.sdk.sandbox import Availability, Plan, Probe, Wrapped

USUAL = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap")
REMEDY = "install bubblewrap (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
READABLE = (
    "/etc/alternatives", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/pki", "/etc/ld.so.cache", "/etc/localtime",
    "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/fonts", "/etc/os-release", "/nix/store",
)  # fmt: skip
"""Each costs every command a fifth of a millisecond: what programs do as well without is not among them."""
ONLINE = ("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf")
OWN = Path(__file__).with_name("etc")
PERLS = ("/usr/bin/perl",)
LAUNCH, QUICK = (str(Path(__file__).parents[1] / name) for name in ("launch.py", "launch.pl"))
INNER = "/run/garra/launch"
FIRST = ("--unshare-all", "--unshare-user")
INSIDE = "1000"


@frozen
class Launcher:
    """What puts the rules on inside: what must be seen there for it, and the argv that runs it, with its own options.
    None of it where nothing can be run.
    """

    mounts: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    plain: bool = False
    """Whether it is started in the plain locale, and told that of the command."""


NONE = Launcher()


class Bubblewrap:
    """`sdk.sandbox.Sandbox` by bubblewrap. `programs` are the places where it may be, by absolute path; `perls`
    those of a Perl of the system's.

    What is shut in is started by a launcher, inside: it puts the limits on, then Landlock's rules and the seccomp
    filter as a further layer. `launch.py` runs on our own Python, `launch.pl` on Perl, in a quarter of the time: it is
    taken where it works, for all but ways out. Where neither can run inside, bubblewrap shuts in alone.
    """

    name = "bwrap"
    hides = True

    def __init__(
        self,
        *,
        probe: Probe,
        programs: Sequence[str] = USUAL,
        perls: Sequence[str] = PERLS,
        compiled: Callable[[str], str] = str,
    ) -> None:
        self._probe, self._compiled = probe, compiled
        self._programs, self._perls = programs, perls
        self._program = programs[0] if programs else ""
        self._nested = True
        self._python = self._quick = NONE
        self._before: tuple[str, ...] = ()

    @property
    def opens(self) -> bool:
        """Whether it can make a way out of the closed network."""
        return self._python != NONE

    async def available(self) -> Availability:
        found = await asyncio.to_thread(self._look)
        if not found:
            return Availability(False, "bubblewrap is not installed", REMEDY)
        self._program = found[0]
        python, quick = self._python, self._quick
        said = ""
        for self._python in dict.fromkeys((python, NONE)):
            self._quick = NONE
            for self._nested in (True, False):  # versions before 0.8 cannot forbid namespaces inside
                said = await self._tried()
                if not said:
                    self._quick = quick
                    self._quick = NONE if quick == NONE or await self._tried() else quick
                    return Availability(True)
        return Availability(False, f"bubblewrap cannot start here: {said}", _remedy(said))

    async def _tried(self) -> str:
        """What a trial run said that failed; else nothing."""
        probed = await self._probe(self.wrap(Plan(("/bin/sh", "-c", "exit 0"), "/tmp", "/tmp")).argv)
        said = probed.output.strip().splitlines() or ["it did not start"]
        return "" if probed.code == 0 else said[-1]

    def _look(self) -> list[str]:
        system, machine = _system(), platform.machine()
        self._before = tuple(_fixed(system))
        self._python = self._quick = NONE
        if machine in syscalls.MACHINES:
            self._python = _python(self._compiled(LAUNCH))
            self._quick = next((_perl(path, machine) for path in self._perls if os.access(path, os.X_OK)), NONE)
        return [program for program in self._programs if os.access(program, os.X_OK)]

    def wrap(self, plan: Plan) -> Wrapped:
        way = "--ro-bind" if plan.read_only else "--bind"
        launcher = self._launcher(plan)
        argv = (
            self._program,
            *FIRST,
            *(("--disable-userns",) if self._nested else ()),
            *(("--share-net",) if plan.network else ()),
            *self._before,
            *(flag for path in ONLINE if plan.network for flag in ("--ro-bind-try", path, path)),
            *launcher.mounts,
            way, plan.workspace, plan.workspace,
            *(flag for bind in plan.binds for flag in _bound(bind)),
            *(flag for path in plan.fixed for flag in ("--ro-bind", path, path)),
            *_closing(plan),
            "--remount-ro", "/",
            "--chdir", plan.workdir,
            "--",
            *(_inside(plan, launcher) if launcher.argv else ()),
            *plan.argv,
        )  # fmt: skip
        env = {**plan.env, "LC_ALL": "C"} if launcher.plain else plan.env
        apart = argv.index("--") - 1
        return Wrapped(argv, env, "/", closed=True, limited=bool(launcher.argv), apart=apart)

    def _launcher(self, plan: Plan) -> Launcher:
        """Perl's where it works: it hands out no socket, and what the environment says to Perl is for the command's."""
        if plan.way_out or any(name.startswith("PERL") for name in plan.env) or self._quick == NONE:
            return self._python
        return self._quick


def _inside(plan: Plan, launcher: Launcher) -> list[str]:
    """The argv of the launcher, which ends where that of the command begins."""
    places = (plan.workspace, "/tmp", "/dev", *(bind.target for bind in plan.binds if bind.writable))
    out = [f"listen={plan.way_out.port}:{plan.way_out.handover}"] if plan.way_out else []
    sockets = (*syscalls.INTERNET, syscalls.AF_NETLINK) if plan.network else syscalls.ORDINARY
    return [
        *launcher.argv,
        *launcher.options,
        "further",
        "read=/",
        *(f"write={place}" for place in places if not (plan.read_only and place == plan.workspace)),
        *(f"limit={name}:{value}" for name, value in plan.limits.items()),
        *out,
        *_locale(plan.env, launcher),
        f"filter={syscalls.program(platform.machine(), sockets).hex()}",
        "--",
    ]


def _locale(env: Mapping[str, str], launcher: Launcher) -> list[str]:
    own = [] if "LC_CTYPE" in env else ["nolocale"]
    return [*own, f"locale={env['LC_ALL']}"] if launcher.plain and "LC_ALL" in env else own


def _fixed(system: Sequence[str]) -> list[str]:
    """What is the same for every command."""
    return [
        "--die-with-parent",
        "--cap-drop", "ALL",
        "--uid", INSIDE,
        "--gid", INSIDE,
        "--hostname", "garra",
        *system,
        *(flag for path in READABLE for flag in ("--ro-bind-try", path, path)),
        "--ro-bind", str(OWN / "passwd"), "/etc/passwd",
        "--ro-bind", str(OWN / "group"), "/etc/group",
        "--proc", "/proc",
        "--remount-ro", "/proc",
        "--dev", "/dev",
        "--tmpfs", "/tmp",
    ]  # fmt: skip


def _bound(bind: Bind) -> tuple[str, str, str]:
    return "--bind" if bind.writable else "--ro-bind", bind.source, bind.target


def _python(launch: str) -> Launcher:
    """`launch`, on our own Python."""
    program, library = os.path.realpath(sys.executable), os.path.dirname(os.__file__)  # noqa: PTH120
    shared = sorted(Path(sys.base_prefix, "lib").glob("libpython*.so*"))
    needed = (program, library, *map(str, shared))
    mounts = [flag for path in needed if not path.startswith("/usr/") for flag in ("--ro-bind", path, path)]
    for packages in (f"{library}/site-packages", f"{library}/dist-packages"):
        if not library.startswith("/usr/") and os.path.isdir(packages):  # noqa: PTH112
            mounts += ["--tmpfs", packages]
    return Launcher((*mounts, "--ro-bind", launch, INNER), (program, "-I", "-S", INNER))


def _perl(program: str, machine: str) -> Launcher:
    """`launch.pl`; `-f` keeps Perl from the system's own additions to its start."""
    options = tuple(f"call={name}:{number}" for name, number in syscalls.numbers(machine).items())
    return Launcher(("--ro-bind", QUICK, INNER), (program, "-f", INNER), options, plain=True)


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
