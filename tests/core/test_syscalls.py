"""What the filter of kernel calls lets through, by a small machine that runs it as the kernel does."""

from __future__ import annotations

import errno
import struct

import pytest

from garra.core.syscalls import INTERNET, MACHINES, ORDINARY, numbers, program

ALLOWED = 0x7FFF0000
AF_UNIX, AF_INET, AF_NETLINK, AF_ALG, AF_VSOCK = 1, 2, 16, 38, 40
NUMBERS = {"x86_64": (56, 16, 41, 135), "aarch64": (220, 29, 198, 92)}
ORDINARY_CALLS = {"x86_64": (0, 1, 2, 59, 257, 202, 9), "aarch64": (63, 64, 56, 221, 98, 222)}


def verdict(filtered: bytes, machine: int, call: int, *args: int) -> int:
    """0 where the call is let through, else the error it ends with."""
    facts = struct.pack("=IIQ6Q", call, machine, 0, *args, *[0] * (6 - len(args)))
    at, held = 0, 0
    while True:
        code, yes, no, value = struct.unpack_from("=HBBI", filtered, 8 * at)
        at += 1
        match code:
            case 0x20:
                held = int(struct.unpack_from("=I", facts, value)[0])
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x45:
                at += yes if held & value else no
            case _:
                return 0 if value == ALLOWED else value & 0xFFFF


@pytest.fixture(params=list(MACHINES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_ordinary_programs_notice_nothing(machine: str) -> None:
    made = program(machine, ORDINARY)
    assert all(verdict(made, MACHINES[machine], call) == 0 for call in ORDINARY_CALLS[machine])
    clone, ioctl, _, personality = NUMBERS[machine]
    assert verdict(made, MACHINES[machine], clone, 0x01200011) == 0
    assert verdict(made, MACHINES[machine], ioctl, 1, 0x5401) == 0
    assert verdict(made, MACHINES[machine], personality, 0xFFFFFFFF) == 0


def test_what_leads_out_is_refused(machine: str) -> None:
    made = program(machine, ORDINARY)
    column = list(MACHINES).index(machine)
    ptrace, mount, bpf, keyctl = ((101, 117), (165, 40), (321, 280), (250, 219))
    for each in (ptrace, mount, bpf, keyctl, (425, 425), (272, 97), (308, 268), (323, 282)):
        assert verdict(made, MACHINES[machine], each[column]) == errno.EPERM
    clone, ioctl, _, personality = NUMBERS[machine]
    assert verdict(made, MACHINES[machine], clone, 0x10000000) == errno.EPERM
    assert verdict(made, MACHINES[machine], 435) == errno.ENOSYS
    kill = (62, 129)[column]
    assert [verdict(made, MACHINES[machine], kill, pid) for pid in (0xFFFFFFFF, 1, 0)] == [errno.EPERM, 0, 0]
    assert verdict(made, MACHINES[machine], ioctl, 0, 0x5412) == errno.EPERM
    assert verdict(made, MACHINES[machine], personality, 0x0040000) == errno.EPERM


def test_sockets_are_of_the_kinds_named(machine: str) -> None:
    kinds = (AF_UNIX, AF_INET, AF_NETLINK, AF_ALG, AF_VSOCK)
    socket = NUMBERS[machine][2]

    def made(families: tuple[int, ...]) -> list[int]:
        return [verdict(program(machine, families), MACHINES[machine], socket, kind) for kind in kinds]

    no = errno.EACCES
    assert made(()) == [no] * 5
    assert made(INTERNET) == [no, 0, no, no, no]
    assert made(ORDINARY) == [0, 0, 0, no, no]


def test_another_machines_calls_and_numbers_are_refused(machine: str) -> None:
    made = program(machine, ORDINARY)
    assert verdict(made, 0x40000003, 0) == errno.EPERM
    assert verdict(made, MACHINES[machine], 0x40000001) == errno.ENOSYS
    with pytest.raises(ValueError, match="riscv64"):
        program("riscv64")


def test_calls_by_number() -> None:
    assert numbers("x86_64") == {"prctl": 157, "capset": 126, "prlimit64": 302, "openat": 257, "close": 3}
    assert numbers("aarch64") == {"prctl": 167, "capset": 91, "prlimit64": 261, "openat": 56, "close": 57}
    with pytest.raises(ValueError, match="riscv64"):
        numbers("riscv64")
