"""Who this client is to a gateway: an Ed25519 key pair in a file of its own, and the tokens gateways gave it."""

from __future__ import annotations

import json
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from garra.core.errors import UserError
from garra.core.value import frozen


@frozen
class Identity:
    """A device. `id` is the hex SHA-256 of the public key; `public` the raw key in base64url without padding."""

    id: str
    public: str
    key: Ed25519PrivateKey = field(repr=False)

    def device(self, connect: Mapping[str, Any], challenge: Mapping[str, Any]) -> dict[str, Any]:
        """The `device` member of `connect`, signed over the rest of it and the gateway's challenge."""
        text = signed_text(self.id, connect, challenge)
        return {
            "id": self.id,
            "publicKey": self.public,
            "signature": _text(self.key.sign(text.encode())),
            "signedAt": challenge["ts"],
            "nonce": challenge["nonce"],
        }


def signed_text(device_id: str, connect: Mapping[str, Any], challenge: Mapping[str, Any]) -> str:
    """What a device signs (form v3): its fields joined with `|`. Raises KeyError when the challenge is none."""
    client: Mapping[str, Any] = connect["client"]
    auth: Mapping[str, str] = connect.get("auth") or {}
    scopes: Sequence[str] = connect.get("scopes") or ()
    return "|".join(
        (
            "v3",
            device_id,
            client["id"],
            client["mode"],
            str(connect.get("role", "operator")),
            ",".join(scopes),
            str(int(challenge["ts"])),
            auth.get("token") or auth.get("deviceToken") or auth.get("bootstrapToken") or "",
            str(challenge["nonce"]),
            str(client.get("platform", "")).strip().lower(),
            str(client.get("deviceFamily", "")).strip().lower(),
        )
    )


def load(folder: Path) -> Identity:
    """The identity below `folder` (`device.json`, mode 600), made when there is none. Blocks; raises UserError."""
    file = folder / "device.json"
    with suppress(FileNotFoundError):
        return _read(file)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = Ed25519PrivateKey.generate()
    _create(file, {"version": 1, "privateKey": _text(key.private_bytes_raw())})
    return _read(file)


def token(folder: Path, url: str) -> str:
    """The device token the gateway at `url` gave us, empty when it gave none. Blocks."""
    return str(_tokens(folder).get(url, ""))


def keep_token(folder: Path, url: str, given: str) -> None:
    """Remember the device token of the gateway at `url`. Blocks."""
    tokens = _tokens(folder)
    if tokens.get(url) != given:
        _replace(folder / "device-tokens.json", {**tokens, url: given})


def _tokens(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / "device-tokens.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(file: Path) -> Identity:
    try:
        key = Ed25519PrivateKey.from_private_bytes(_bytes(json.loads(file.read_text())["privateKey"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file} is no device key; remove it and this device gets a new one") from error
    raw = key.public_key().public_bytes_raw()
    return Identity(sha256(raw).hexdigest(), _text(raw), key)


def _create(file: Path, body: Mapping[str, Any]) -> None:
    """Write a new file whole; when another process made it meanwhile, its file stays."""
    whole = _beside(file, body)
    with suppress(FileExistsError):
        os.link(whole, file)
    whole.unlink()


def _replace(file: Path, body: Mapping[str, Any]) -> None:
    _beside(file, body).replace(file)


def _beside(file: Path, body: Mapping[str, Any]) -> Path:
    whole = file.with_name(f".{file.name}.{os.getpid()}")
    whole.unlink(missing_ok=True)
    with open(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:  # noqa: PTH123 - its mode
        json.dump(body, opened)
    return whole


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
