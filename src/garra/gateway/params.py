"""The closed shapes of parameters: camelCase on the wire, nothing unknown let in."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

__all__ = ["UNSET", "Attachment", "Index", "Limit", "Name", "Nothing", "Params", "UnsetType"]

Name = Annotated[str, Meta(min_length=1)]
Index = Annotated[int, Meta(ge=0)]
Limit = Annotated[int, Meta(ge=1)]


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A method's parameters. A field that may be null, and then means something else than absent, defaults to UNSET."""


class Nothing(Params, frozen=True):
    """No parameters."""


class Attachment(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A file that comes with a message; `content` is base64, or a data URL."""

    type: str | None = None
    mime_type: str | None = None
    file_name: str | None = None
    content: Any = None
