"""Puts the kernel's rules on itself, then becomes the command. A script run in isolation: it imports nothing of ours.

Options, before `--`: `read=PATH` may be read and run · `write=PATH` may be used fully · `device=PATH` may be read and
written · `tmp=PATH` a folder to make first · `offline` no TCP · `filter=HEX` the seccomp program.
Ends with 125 and a line where the kernel cannot do it: nothing has been run then.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from typing import NoReturn

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

libc = ctypes.CDLL(None, use_errno=True)


def give_up(what: str) -> NoReturn:
    sys.stderr.write(f"landlock: {what}\n")
    sys.stderr.flush()
    os._exit(CANNOT)


def call(number: int, *args: object) -> int:
    result: int = libc.syscall(number, *args)
    return result


def every_right(version: int) -> int:
    bits = 16 if version >= 5 else 15
    return (1 << bits) - 1


def ruleset(version: int, *, offline: bool) -> int:
    """A descriptor of a new set of rules that forbids all it knows of."""
    fields = [every_right(version)]
    if version >= 4:
        fields.append(NO_TCP if offline else 0)
    if version >= 6:
        fields.append(NO_OUTSIDE_SIGNALS_OR_SOCKETS)
    body = struct.pack(f"={len(fields)}Q", *fields)
    made = call(CREATE_RULESET, body, ctypes.c_size_t(len(body)), 0)
    if made < 0:
        give_up(os.strerror(ctypes.get_errno()))
    return made


def allow(rules: int, path: str, rights: int) -> None:
    """Let `rights` through at `path` and below; a path that is not there needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112 - no pathlib here
        rights &= ON_FILES
    rule = struct.pack("=Qi", rights, place)
    if call(ADD_RULE, rules, 1, rule, 0) < 0:
        give_up(f"{path}: {os.strerror(ctypes.get_errno())}")
    os.close(place)


def drop_capabilities() -> None:
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("=Ii", 0x20080522, 0)
    libc.capset(header, struct.pack("=6I", 0, 0, 0, 0, 0, 0))


def filter_calls(program: bytes) -> None:
    instructions = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, head, 0, 0) != 0:
        give_up(f"seccomp: {os.strerror(ctypes.get_errno())}")


def main(args: Sequence[str]) -> NoReturn:
    split = args.index("--")
    options, argv = [option.partition("=")[::2] for option in args[:split]], list(args[split + 1 :])
    named = dict(options)
    version = call(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < OLDEST:
        give_up("this kernel has no Landlock, or an old one" if version > 0 else "this kernel has no Landlock")
    if "tmp" in named:
        os.makedirs(named["tmp"], mode=0o700, exist_ok=True)  # noqa: PTH103 - no pathlib here
    rules = ruleset(version, offline="offline" in named)
    everything = every_right(version)
    rights = {"read": READING, "write": everything, "device": (READ | WRITE | DEVICE_CALLS) & everything}
    for name, value in options:
        if name in rights:
            allow(rules, value, rights[name])
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    drop_capabilities()
    if call(RESTRICT_SELF, rules, 0) != 0:
        give_up(os.strerror(ctypes.get_errno()))
    os.closerange(3, 1_024)
    filter_calls(bytes.fromhex(named.get("filter", "")))
    try:
        os.execv(argv[0], argv)
    except OSError as error:
        give_up(f"{argv[0]}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
