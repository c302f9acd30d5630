"""What of the machine may not get into a container."""

from __future__ import annotations

import pytest

from garra.core.containers import Bind, Container, Ground, bind, bind_faults, faults

HOME = "/home/me"
GROUND = Ground(HOME, ("/home/me/state/.g", "/srv/own"), ("/home/me/work",))
ANYWHERE = Ground(HOME, ("/home/me/state/.g", "/srv/own"), external=True)


def refused(source: str, *, real: str = "", ground: Ground = ANYWHERE, target: str = "/data") -> list[str]:
    return list(bind_faults([(Bind(source, target), real or source)], ground))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/a:/b", Bind("/a", "/b")),
        ("/a:/b:ro", Bind("/a", "/b")),
        ("/a/../c//d:/b/:rw", Bind("/c/d", "/b", writable=True)),
        ("//etc:/b", Bind("/etc", "/b")),
        ("a:/b", None), ("/a", None), ("/a:/b:x", None), ("/a:b", None), ("/a:/b:rw:z", None), ("/a\0:/b", None),
        ("", None),
    ],
)  # fmt: skip
def test_binds_are_written_so(text: str, found: Bind | None) -> None:
    assert bind(text) == found


@pytest.mark.parametrize(
    "source",
    [
        "/", "/etc", "/etc/ssh", "/proc", "/sys", "/dev/sda", "/root", "/boot", "/run", "/var", "/var/run/docker.sock",
        "/run/user/1000/podman/podman.sock", "/tmp/engine.sock", "/var/lib/docker/volumes", "/home", HOME,
        f"{HOME}/.ssh", f"{HOME}/.ssh/id_ed25519", f"{HOME}/.config/gcloud", f"{HOME}/.netrc", f"{HOME}/.garra",
        "/home/me/state", "/home/me/state/.g/state.db", "/srv/own", "/srv",
    ],
)  # fmt: skip
def test_dangerous_sources_are_refused_whatever_the_owner_allows(source: str) -> None:
    assert refused(source)


def test_where_a_source_really_is_counts() -> None:
    assert refused("/mnt/link", real="/etc")
    assert refused("/mnt/link", real="/home/me/.aws")
    assert not refused("/mnt/disk", real="/mnt/other")


def test_outside_the_workspace_only_where_allowed() -> None:
    assert not refused("/home/me/work/data", ground=GROUND)
    assert not refused("/home/me/work", ground=GROUND)
    assert "dangerouslyAllowExternalBindSources" in refused("/mnt/disk", ground=GROUND)[0]
    assert "dangerouslyAllowExternalBindSources" in refused("/home/me/workshop", ground=GROUND)[0]
    assert refused("/home/me/work/link", real="/mnt/disk", ground=GROUND)


def test_a_workspace_may_lie_in_the_gateways_own_place_and_not_the_other_way_round() -> None:
    inside = Ground(HOME, ("/srv/own",), ("/srv/own/workspace",))
    assert not refused("/srv/own/workspace/data", ground=inside)
    assert refused("/srv/own/agents", ground=inside)
    above = Ground(HOME, ("/srv/own",), ("/srv",))
    assert refused("/srv/own/agents", ground=above)


def test_the_systems_own_folders_are_not_stood_in_for() -> None:
    assert refused("/mnt/disk", target="/usr")
    assert not refused("/mnt/disk", target="/usr", ground=Ground(HOME, external=True, reserved=True))


def said(container: Container, *, join: bool = False) -> str:
    return " | ".join(faults(container, Ground(HOME, join=join)))


def test_containers() -> None:
    assert said(Container()) == ""
    assert said(Container(network="bridge", user="1000:1000", env={"LANG": "C.UTF-8"})) == ""
    assert "machine's own network" in said(Container(network="host"))
    assert "dangerouslyAllowContainerNamespaceJoin" in said(Container(network="container:abc"))
    assert said(Container(network="container:abc"), join=True) == ""
    assert said(Container(network="container:-x"), join=True)
    assert said(Container(network="--privileged"))
    assert said(Container(user="root; rm"))
    assert said(Container(image="-v"))
    assert said(Container(image=""))
    assert said(Container(seccomp_profile="unconfined"))
    assert said(Container(apparmor_profile="unconfined"))
    assert said(Container(env={"A=B": "x"}))
    assert said(Container(env={"A": "x\ny"}))
    assert "setupCommand" in said(Container(setup="x" * 20_001))
    assert "setupCommand" in said(Container(setup="a\0b"))


def test_a_digest_is_of_every_setting() -> None:
    plain = Container()
    assert plain.digest == Container(session="s", prepared="p").digest
    others = [Container(image="x"), Container(setup="x"), Container(env={"a": "b"}), Container(scope="x")]
    assert len({plain.digest, *(each.digest for each in others)}) == 5
    assert Container(env={"a": "1", "b": "2"}).digest == Container(env={"b": "2", "a": "1"}).digest
