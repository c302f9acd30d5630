"""What a client says, before it is a turn: one shape for `chat.send`, `agent`, `sessions.send` and HTTP."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from garra.core import thinking
from garra.core.errors import UserError
from garra.core.ids import RunId, SessionKey
from garra.core.messages import Image
from garra.core.value import frozen
from garra.gateway.ledgers import digest, user_key
from garra.gateway.method import Caller
from garra.gateway.params import Attachment
from garra.runs.run import QueueMode
from garra.sdk.model import Level

PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_BYTES = 20 << 20


@frozen
class Said:
    """One message for one session. `run_id` is the sender's idempotency key; `queue` says what to do when busy."""

    key: SessionKey
    text: str
    run_id: RunId
    images: tuple[Image, ...] = ()
    model: str | None = None
    thinking: Level | None = None
    queue: QueueMode | None = None
    timeout_s: float | None = None
    extra_system: str = ""


def asked(said: Said) -> str:
    """What tells this message from another one under the same key."""
    return digest(said.key, said.text, *(image.data for image in said.images))


def level(text: str | None) -> Level | None:
    """A thinking level as clients write it; None for none. Raises UserError for an unknown one."""
    if text is None or not text.strip():
        return None
    found = thinking.level(text)
    if found is None:
        raise UserError(thinking.unknown(text))
    return found


def images_of(attachments: Sequence[Attachment]) -> tuple[Image, ...]:
    """The pictures among what came with a message. Raises UserError for what cannot be taken."""
    return tuple(_image(attachment) for attachment in attachments)


def _image(attachment: Attachment) -> Image:
    name = attachment.file_name or "attachment"
    media, data = (attachment.mime_type or "").lower(), attachment.content
    if not isinstance(data, str):
        raise UserError(f"{name[:80]}: the content must be base64 text")
    return image(data, media, name)


def image(data: str, media: str = "", name: str = "image") -> Image:
    """A picture from base64 text or a data URL. Raises UserError when it is none."""
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        media = head[5:].partition(";")[0].lower() or media
    if media not in PICTURES:
        raise UserError(f"{name[:80]}: {media or 'no type'} cannot be attached; pictures (PNG, JPEG, GIF, WebP) can")
    plain = "".join(data.split())
    if len(plain) * 3 // 4 > IMAGE_BYTES:
        raise UserError(f"{name[:80]}: larger than {IMAGE_BYTES >> 20} MiB")
    try:
        base64.b64decode(plain, validate=True)
    except binascii.Error as fault:
        raise UserError(f"{name[:80]}: not valid base64 ({fault})") from fault
    return Image(media, plain)


def meta_of(run_id: str, caller: Caller) -> dict[str, Any]:
    """What is kept with the message: the key it came with and who sent it, as the gateway knows them."""
    client: dict[str, Any] = {"id": caller.client.id, "mode": caller.client.mode}
    if caller.client.display_name:
        client["displayName"] = caller.client.display_name
    about: dict[str, Any] = {"senderIsOwner": True, "transport": {"clients": [client]}}
    if profile := caller.who.profile:
        about |= {"senderId": profile, "senderIdentity": {"type": "profile", "id": profile}}
    return {"idempotencyKey": user_key(run_id), "__openclaw": about}
