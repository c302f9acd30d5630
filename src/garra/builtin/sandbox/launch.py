"""Puts the kernel's rules on itself, then becomes the command. A script run in isolation: it imports nothing of ours.

Options, before `--`: `read=PATH` may be read and run · `write=PATH` may be used fully · `device=PATH` may be read and
written · `tmp=PATH` a folder to make first · `offline` no TCP · `filter=HEX` the seccomp program · `limit=NAME:VALUE` a
limit of `resource` · `listen=PORT:FD` a socket that listens on the loopback, handed out over that descriptor ·
`further` the rules are a further layer: what an old kernel lacks is left out · `nolocale` pass on no LC_CTYPE.
Else it ends with 125 and a line where the kernel cannot do it: nothing has been run then. `launch.pl` does the same for
most commands inside bubblewrap: what changes here changes there.

Every command pays for what is imported here: `ctypes` and `socket` cost milliseconds, the modules below them nothing.
"""

from __future__ import annotations

import _ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

CANNOT = 125
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
OLDEST = 3
"""The first version that also forbids cutting files short."""
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SECCOMP, MODE_FILTER = 38, 24, 22, 2

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, DEVICE_CALLS = 1 << 14, 1 << 15
READING = EXECUTE | READ | LIST
ON_FILES = EXECUTE | WRITE | READ | TRUNCATE | DEVICE_CALLS
NO_TCP = 0b11
NO_OUTSIDE_SIGNALS_OR_SOCKETS = 0b11
LIMITS = {"CPU": 0, "FSIZE": 1, "DATA": 2, "STACK": 3, "CORE": 4, "NPROC": 6, "NOFILE": 7, "AS": 9}
BACKLOG = 64
USUAL = (1, 2, 3, 13, 25)
"""HUP, INT, QUIT, PIPE, XFSZ."""

C: Any = _ctypes
LIBRARY = C.dlopen(None, 0)


def give_up(what: str) -> NoReturn:
    sys.stderr.write(f"launch: {what}\n")
    sys.stderr.flush()
    os._exit(CANNOT)


def call(name: str, *args: object) -> int:
    """A function of the C library, which answers with an int."""
    result: int = C.call_function(C.dlsym(LIBRARY, name), args)
    return result


def number(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, sys.byteorder)


def every_right(version: int) -> int:
    bits = 16 if version >= 5 else 15
    return (1 << bits) - 1


def ruleset(version: int, *, offline: bool) -> int:
    """A descriptor of a new set of rules that forbids all it knows of."""
    body = number(every_right(version))
    if version >= 4:
        body += number(NO_TCP if offline else 0)
    if version >= 6:
        body += number(NO_OUTSIDE_SIGNALS_OR_SOCKETS)
    made = call("syscall", CREATE_RULESET, body, len(body), 0)
    if made < 0:
        give_up("the kernel takes no Landlock rules")
    return made


def allow(rules: int, path: str, rights: int) -> None:
    """Let `rights` through at `path` and below; a path that is not there needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - no pathlib here
        rights &= ON_FILES
    if call("syscall", ADD_RULE, rules, 1, number(rights) + number(place, 4), 0) < 0:
        give_up(f"{path}: the kernel takes no Landlock rule for it")
    os.close(place)


def restrict(options: Sequence[tuple[str, str]], *, offline: bool, further: bool) -> None:
    """Files, TCP, signals and sockets, by Landlock."""
    version = call("syscall", CREATE_RULESET, None, 0, 1)
    if version < OLDEST and further:
        return
    if version < OLDEST:
        give_up("this kernel has no Landlock, or an old one" if version > 0 else "this kernel has no Landlock")
    rules = ruleset(version, offline=offline)
    everything = every_right(version)
    rights = {"read": READING, "write": everything, "device": (READ | WRITE | DEVICE_CALLS) & everything}
    for name, value in options:
        if name in rights:
            allow(rules, value, rights[name])
    if call("syscall", RESTRICT_SELF, rules, 0) != 0:
        give_up("the kernel does not take the Landlock rules")


def drop_capabilities() -> None:
    for capability in range(64):
        call("prctl", PR_CAPBSET_DROP, capability, 0, 0, 0)
    call("capset", number(0x20080522, 4) + number(0, 4), number(0, 8) * 3)


def limit(value: str) -> None:
    """No more than what holds already."""
    name, _, most = value.partition(":")
    kind, held = LIMITS[name], buffer(bytes(16))
    call("getrlimit", kind, held)
    hard = int.from_bytes(bytes(held)[8:], sys.byteorder)
    wanted = number(min(int(most), hard))
    if call("setrlimit", kind, wanted * 2) != 0:
        give_up(f"the limit {name} cannot be put on")


def listen(value: str) -> None:
    """A way out: who gets the descriptor may accept what the command connects to the port."""
    import _socket  # noqa: PLC0415 - only where there is a way out

    port, _, handover = value.partition(":")
    door = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    door.bind(("127.0.0.1", int(port)))
    door.listen(BACKLOG)
    over = _socket.socket(fileno=int(handover))
    over.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number(door.fileno(), 4))])
    over.close()
    door.close()


def buffer(data: bytes) -> Any:
    """Memory that the kernel may read and write, made as `ctypes` makes it."""
    byte = type("Byte", (C._SimpleCData,), {"_type_": "c"})  # noqa: SLF001
    many: Any = type("Buffer", (C.Array,), {"_type_": byte, "_length_": len(data)})
    return many.from_buffer_copy(data)


def filter_calls(program: bytes) -> None:
    kept = buffer(program)
    head = number(len(program) // 8, 2) + bytes(6) + number(C.addressof(kept))
    if call("prctl", PR_SET_SECCOMP, MODE_FILTER, head, 0, 0) != 0:
        give_up("the kernel takes no seccomp filter")


def be_let_go() -> None:
    """Tell the gateway, over the descriptor it named, that we are here: the kernel adds by which number it knows us.
    It says when it has seen to what can be seen to from outside only. Where it has ended meanwhile, so do we.
    """
    hold = os.environ.pop("GARRA_HOLD", "")  # noqa: TID251 - a program of its own
    if hold:
        os.write(int(hold), b".")
        if not os.read(int(hold), 1):
            os._exit(CANNOT)
        os.close(int(hold))


def hear_signals() -> None:
    """What is ignored stays so in the command: a pipe would never end it, as Python ignores that, and the keys of a
    terminal neither, where the gateway was begun behind a shell or by nohup.
    """
    signals: Any = __import__("_signal")  # built in
    for number in USUAL:
        signals.signal(number, signals.SIG_DFL)


def main(args: Sequence[str]) -> NoReturn:
    split = args.index("--")
    options = [(name, value) for name, _, value in (option.partition("=") for option in args[:split])]
    argv, named = list(args[split + 1 :]), dict(options)
    be_let_go()
    if "tmp" in named:
        os.makedirs(named["tmp"], mode=0o700, exist_ok=True)  # noqa: PTH103 - no pathlib here
    if "listen" in named:
        listen(named["listen"])
    for name, value in options:
        if name == "limit":
            limit(value)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if "further" not in named:
        drop_capabilities()
    restrict(options, offline="offline" in named, further="further" in named)
    os.closerange(3, 1_024)
    if "nolocale" in named:
        os.environ.pop("LC_CTYPE", None)  # noqa: TID251 - a program of its own
    hear_signals()
    filter_calls(bytes.fromhex(named.get("filter", "")))
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        give_up(f"{argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
