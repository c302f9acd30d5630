"""The keys of one login: matrix-nio's Olm machine over its own store. Everything blocks and belongs in a thread.

Each call is one transaction, so a crash finds all of it or nothing. Loading this module loads matrix-nio; nothing of
it touches the network.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from threading import Lock
from typing import Any

import vodozemac
from nio.crypto import Olm, decrypt_attachment, encrypt_attachment
from nio.events.to_device import ToDeviceEvent
from nio.exceptions import EncryptionError, LocalProtocolError
from nio.responses import KeysClaimResponse, KeysQueryResponse, KeysUploadResponse
from nio.store import SqliteStore

from garra.builtin.channels.matrix.text import Me
from garra.sdk.encoding import parsed

MEGOLM = "m.megolm.v1.aes-sha2"
_BAD = (
    vodozemac.DecodeException,
    vodozemac.KeyException,
    vodozemac.MegolmDecryptionException,
    vodozemac.OlmDecryptionException,
    vodozemac.PickleException,
    vodozemac.SessionCreationException,
    vodozemac.SessionKeyDecodeException,
    vodozemac.SignatureException,
    EncryptionError,
    LocalProtocolError,
    AssertionError,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)
"""What another's misshapen key or message can raise in the libraries."""
UNKNOWN = "it comes from a device that its sender does not have"
NO_KEY = "its key has not come"
_SEEN = 100_000


class Vault:
    """The Olm machine of `me`, kept in `folder`."""

    def __init__(self, folder: str, me: Me) -> None:
        logging.getLogger("nio").setLevel(logging.CRITICAL)  # it tells ids and sessions of every message
        self._me, self._lock = me, Lock()
        self._store = SqliteStore(me.id, me.device, folder, pickle_key="garra", database_name=f"{me.device}.db")
        self._olm = Olm(me.id, me.device, self._store)
        self._store.database.close()
        self._withheld: dict[str, str] = {}
        self._indexes: dict[tuple[str, int], str] = {}

    def __enter__(self) -> None:
        """One call: alone, on a connection of this thread, in one transaction."""
        self._lock.acquire()
        self._store.database.connect(reuse_if_open=True)
        self._transaction = self._store.database.atomic()
        self._transaction.__enter__()

    def __exit__(self, *error: Any) -> None:
        try:
            self._transaction.__exit__(*error)
        finally:
            self._store.database.close()
            self._lock.release()

    # ---- this device

    @property
    def identity(self) -> Mapping[str, str]:
        keys = self._olm.account.identity_keys
        return {f"curve25519:{self._me.device}": keys["curve25519"], f"ed25519:{self._me.device}": keys["ed25519"]}

    def agrees(self, known: Mapping[str, Any] | None) -> bool:
        """Whether the server's keys of this device are ours; `known` is None where it has none yet."""
        with self:
            if known is None:
                self._olm.account.shared = False
                self._olm.save_account()
                return True
            return dict(known.get("keys") or {}) == dict(self.identity)

    def upload(self) -> Mapping[str, Any] | None:
        """What the server is to know of this device now. It is on the disk before anybody sees it."""
        if not self._olm.should_upload_keys:
            return None
        with self:
            content: Mapping[str, Any] = self._olm.share_keys()
            self._olm.save_account()
            return content

    def uploaded(self, found: Mapping[str, Any]) -> None:
        counts = found.get("one_time_key_counts") or {}
        with self:
            signed = int(counts.get("signed_curve25519") or 0)
            self._olm.handle_response(KeysUploadResponse(int(counts.get("curve25519") or 0), signed))

    # ---- what comes in

    def feed(self, found: Mapping[str, Any]) -> bool:
        """Take the keys of one sync; whether there are new ones. What comes a second time is taken once: what was
        taken of the last sync stands in the same transaction as what it brought."""
        events = [one for one in (found.get("to_device") or {}).get("events") or () if isinstance(one, dict)]
        if not events:
            with self._lock:
                self._lists(found)
            return False
        named = {_digest(event): event for event in events}
        with self:
            done = frozenset((self._store.load_sync_token() or "").split())
            fresh = [self._take(event) for name, event in named.items() if name not in done]
            self._lists(found)
            self._olm.save_account()
            self._store.save_sync_token(" ".join(named))
            return any(fresh)

    def _take(self, event: Mapping[str, Any]) -> bool:
        if str(event.get("type")).endswith("room_key.withheld"):
            content = event.get("content") or {}
            self._withheld[str(content.get("session_id"))] = str(content.get("code"))
        if event.get("type") != "m.room.encrypted":
            return False
        with suppress(*_BAD), self._store.database.atomic():
            parsed = ToDeviceEvent.parse_event(event)
            return self._olm.handle_to_device_event(parsed) is not None
        return False

    def _lists(self, found: Mapping[str, Any]) -> None:
        changed = (found.get("device_lists") or {}).get("changed") or ()
        self._olm.add_changed_users({str(user) for user in changed} & self._olm.tracked_users)
        count = (found.get("device_one_time_keys_count") or {}).get("signed_curve25519")
        if "device_one_time_keys_count" in found:
            self._olm.uploaded_key_count = int(count or 0)

    def opened(self, room: str, event: Mapping[str, Any]) -> Mapping[str, Any] | str:
        """The event in an encrypted one, or why it cannot be read."""
        content = event.get("content") or {}
        if content.get("algorithm") != MEGOLM:
            return "it is encrypted in a way that is not known here"
        with self._lock:
            try:
                session = self._session(room, content)
                if session is None:
                    code = self._withheld.get(str(content.get("session_id")))
                    return f"its sender's program gives this device no key ({code})" if code else NO_KEY
                plaintext, index = session.decrypt(content["ciphertext"])
                inner = parsed(plaintext)
                return self._sound(session, room, event, index) or _inner(event, inner, room)
            except _BAD:
                return "its key does not fit"

    def _session(self, room: str, content: Mapping[str, Any]) -> Any:
        """By the sender's key where it is told, which newer clients leave out."""
        wanted = str(content.get("session_id"))
        if isinstance(key := content.get("sender_key"), str):
            return self._olm.inbound_group_store.get(room, key, wanted)
        listed = (held.get(wanted) for held in list(self._olm.inbound_group_store[room].values()))
        return next((session for session in listed if session is not None), None)

    def _sound(self, session: Any, room: str, event: Mapping[str, Any], index: int) -> str:
        """Why a message that could be decrypted is not believed; empty when it is."""
        sender = str(event.get("sender"))
        mine = sender == self._me.id and session.sender_key == self._olm.account.identity_keys["curve25519"]
        devices = self._olm.device_store[sender].values()
        owner = next((one for one in devices if one.curve25519 == session.sender_key), None)
        if not mine and (owner is None or owner.ed25519 != session.ed25519):
            return UNKNOWN
        before = self._indexes.setdefault((session.id, index), str(event.get("event_id")))
        while len(self._indexes) > _SEEN:
            self._indexes.pop(next(iter(self._indexes)))
        return "" if before == event.get("event_id") else "it repeats another message"

    # ---- what goes out

    def asking(self, users: Iterable[str]) -> list[str]:
        """Of whom the devices must be asked for first."""
        stale = self._olm.users_for_key_query
        return [user for user in users if user not in self._olm.tracked_users or user in stale]

    def queried(self, users: Iterable[str], found: Mapping[str, Any]) -> None:
        """Take what the server says of people's devices; one person's misshapen ones are nobody else's fault."""
        devices = found.get("device_keys") or {}
        reached = set(users) & devices.keys()
        with self:
            for user in reached:
                with suppress(*_BAD):
                    self._olm.handle_response(KeysQueryResponse({user: devices[user]}, {}))
            self._olm.tracked_users |= reached
            self._olm.users_for_key_query -= reached

    def missing(self, users: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Devices with whom there is no session yet, as a claim of their one-time keys."""
        with self:
            lacking = self._olm.get_missing_sessions(list(users))
            return {user: dict.fromkeys(devices, "signed_curve25519") for user, devices in lacking.items()}

    def wedged(self) -> Mapping[str, Mapping[str, str]]:
        """Devices whose session broke, as such a claim."""
        found: dict[str, dict[str, str]] = {}
        for device in self._olm.wedged_devices:
            found.setdefault(device.user_id, {})[device.device_id] = "signed_curve25519"
        return found

    def claimed(self, found: Mapping[str, Any]) -> None:
        with self:
            for user, devices in (found.get("one_time_keys") or {}).items():
                for device, keys in devices.items():
                    with suppress(*_BAD):
                        self._olm.handle_response(KeysClaimResponse({user: {device: keys}}, {}))

    def waiting(self) -> list[tuple[str, Mapping[str, Any], Any]]:
        """To-device messages to send: type, content, and what `posted` takes."""
        return [(one.type, one.as_dict(), one) for one in self._olm.outgoing_to_device_messages]

    def posted(self, message: Any) -> None:
        with self:
            self._olm._mark_to_device_message_as_sent(message)  # noqa: SLF001 - the machine has no other door for it

    def ready(self, room: str, users: Iterable[str]) -> bool:
        """Whether the room's key is with every device that is to read it, and with no other."""
        session = self._olm.outbound_group_sessions.get(room)
        if session is None or session.expired or not session.shared:
            return False
        wanted = {(user, one.id) for user in users for one in self._olm.device_store.active_user_devices(user)}
        return wanted - {(self._me.id, self._me.device)} == self._reached(session)

    def _reached(self, session: Any) -> set[tuple[str, str]]:
        return set(session.users_shared_with | session.users_ignored) - {(self._me.id, self._me.device)}

    def anew(self, room: str) -> None:
        """The next message in a room has a new key."""
        self._olm.outbound_group_sessions.pop(room, None)

    def share(self, room: str, users: Sequence[str]) -> tuple[set[tuple[str, str]], Mapping[str, Any]]:
        """The next devices that must get the room's key, at most twenty, and the message to them; nobody: all have."""
        with self:
            found: tuple[set[tuple[str, str]], Mapping[str, Any]] = self._olm.share_group_session(
                room, list(users), ignore_missing_sessions=True, ignore_unverified_devices=True
            )
            return found

    def shared(self, room: str, devices: Iterable[tuple[str, str]]) -> None:
        session = self._olm.outbound_group_sessions[room]
        session.users_shared_with.update(devices)

    def encrypted(self, room: str, kind: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """The event that holds another. What it relates to stands outside, where the server reads it."""
        inner = {key: value for key, value in content.items() if key != "m.relates_to"}
        with self:
            self._olm.outbound_group_sessions[room].mark_as_shared()
            locked: Mapping[str, Any] = self._olm.group_encrypt(room, {"type": kind, "content": inner})
        relation = content.get("m.relates_to")
        return locked if relation is None else {**locked, "m.relates_to": relation}

    # ---- rooms once seen encrypted, whatever the server says later

    def locked(self) -> set[str]:
        with self:
            return set(self._store.load_encrypted_rooms())

    def lock(self, room: str) -> None:
        with self:
            self._store.save_encrypted_rooms([room])


def _digest(event: Mapping[str, Any]) -> str:
    return sha256(json.dumps(event, sort_keys=True).encode()).hexdigest()[:32]


def _inner(event: Mapping[str, Any], inner: Mapping[str, Any], room: str) -> Mapping[str, Any] | str:
    if inner.get("room_id") != room:
        return "it was made for another room"
    content = dict(inner["content"])
    if "m.relates_to" not in content and "m.relates_to" in event["content"]:
        content["m.relates_to"] = event["content"]["m.relates_to"]
    return {**event, "type": str(inner["type"]), "content": content}


def lock(data: bytes) -> tuple[bytes, Mapping[str, Any]]:
    """A file encrypted, and what it is read by."""
    found: tuple[bytes, Mapping[str, Any]] = encrypt_attachment(data)
    return found


def unlock(data: bytes, keys: Mapping[str, Any]) -> bytes:
    """A file decrypted. Raises ValueError when it is not what was sent."""
    try:
        found: bytes = decrypt_attachment(data, keys["key"]["k"], keys["hashes"]["sha256"], keys["iv"])
    except EncryptionError as error:
        raise ValueError(str(error)) from None
    return found
