"""The one outbound HTTP door. Light to import: the library behind it loads with the first request."""

from __future__ import annotations

from garra.io.http.door import GuardedHttp

__all__ = ["GuardedHttp"]
