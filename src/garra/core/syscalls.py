"""The seccomp program: which calls to the kernel a command that is shut in may not make.

Refused are those that reach other processes, other namespaces, the kernel's own configuration, or parts of the kernel
that no ordinary program needs and that have been broken often. Sockets are of the kinds that the sandbox names.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from functools import lru_cache

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16
NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX put words into a terminal as if they had been typed."""
EVERYBODY = (0xFFFFFFFF,)
"""kill(-1): a signal to whoever can be reached, which before Linux 6.12 Landlock does not hold back."""
PERSONALITIES = (0, 0xFFFFFFFF)
"""Linux as it is, and the question which it is; another one switches off the mixing of addresses."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
INTERNET = (AF_INET, AF_INET6)
ORDINARY = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
"""What programs use where the network is a namespace of its own. Without this, AF_VSOCK leads to the machine below a
virtual one, and AF_ALG into the kernel's ciphers: no namespace stands in the way of either."""
X32 = 0x40000000

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264), "userfaultfd": (323, 282), "kcmp": (312, 272), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "acct": (163, 89), "syslog": (103, 116),
    "vhangup": (153, 58), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "pidfd_getfd": (438, 438), "mount_setattr": (442, 442),
    "fanotify_init": (300, 262), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "lsm_set_self_attr": (460, 460),
}  # fmt: skip
"""Each call's number on the machines of `MACHINES`, in their order."""
_OF_INTEL = (172, 173, 134, 139, 154, 174, 177, 178, 180, 212)
"""iopl, ioperm, uselib, sysfs, modify_ldt, and what the kernel no longer has."""
_CLONE, _IOCTL, _SOCKET, _PERSONALITY, _KILL = (56, 220), (16, 29), (41, 198), (135, 92), (62, 129)
_CLONE3 = 435
_BY_NUMBER = {"prctl": (157, 167), "capset": (126, 91), "prlimit64": (302, 261), "openat": (257, 56), "close": (3, 57)}
"""What a program must call by number where it has no library of C to ask, besides the calls whose numbers are the
same everywhere."""


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _refuse(number: int) -> bytes:
    return _step(RETURN, ERROR | number)


def _when(call: int, body: Sequence[bytes]) -> bytes:
    """`body`, which ends in a return, for one call."""
    return _step(EQUAL, call, 0, len(body)) + b"".join(body)


@lru_cache(16)
def program(machine: str, sockets: tuple[int, ...] = ()) -> bytes:
    """The filter for a machine of `MACHINES`, with sockets of these families only; raises ValueError for others."""
    column = list(MACHINES).index(machine)
    refused = [numbers[column] for numbers in _REFUSED.values()] + (list(_OF_INTEL) if column == 0 else [])
    parts = [
        _step(LOAD, MACHINE),
        _step(EQUAL, MACHINES[machine], 1, 0),
        _refuse(errno.EPERM),
        _step(LOAD, NUMBER),
        _step(AT_LEAST, X32, 0, 1),
        _refuse(errno.ENOSYS),
        *(_when(number, [_refuse(errno.EPERM)]) for number in refused),
        _when(_CLONE3, [_refuse(errno.ENOSYS)]),
        _when(_CLONE[column], _unless(0, ANY_BIT, (NEW_NAMESPACES,))),
        _when(_IOCTL[column], _unless(1, EQUAL, TERMINAL_INPUT)),
        _when(_KILL[column], _unless(0, EQUAL, EVERYBODY)),
        _when(_PERSONALITY[column], _only(0, PERSONALITIES, errno.EPERM)),
        _when(_SOCKET[column], _only(0, sockets, errno.EACCES)),
        _step(RETURN, ALLOW),
    ]
    return b"".join(parts)


def numbers(machine: str) -> dict[str, int]:
    """The numbers of `_BY_NUMBER` on a machine of `MACHINES`; raises ValueError for others."""
    column = list(MACHINES).index(machine)
    return {name: each[column] for name, each in _BY_NUMBER.items()}


def _argument(index: int) -> bytes:
    return _step(LOAD, ARGUMENTS + 8 * index)


def _unless(index: int, test: int, values: Sequence[int]) -> list[bytes]:
    """Allowed unless the argument is (or has a bit of) one of `values`."""
    tests = [_step(test, value, len(values) - at, 0) for at, value in enumerate(values)]
    return [_argument(index), *tests, _step(RETURN, ALLOW), _refuse(errno.EPERM)]


def _only(index: int, values: Sequence[int], fault: int) -> list[bytes]:
    """Refused unless the argument is one of `values`."""
    tests = [_step(EQUAL, value, len(values) - at, 0) for at, value in enumerate(values)]
    return [_argument(index), *tests, _refuse(fault), _step(RETURN, ALLOW)]
