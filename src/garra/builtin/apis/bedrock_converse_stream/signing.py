"""AWS' credentials, from wherever its tools keep them, and its signature; both by AWS' own library.

The library itself asks the servers that give out credentials (single sign-on, roles, a machine's own); only the call
to the model goes through our door.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from garra.core.errors import Failure, FailureKind, RunFailed
from garra.sdk.cloud import Cloud, told
from garra.sdk.model import Model

_HOST = re.compile(r"//bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")


class Signer:
    """Signs requests; credentials are kept, and renewed by the library before they end."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._chains: dict[str, Any] = {}

    def signed(self, model: Model, url: str, body: bytes) -> dict[str, str]:
        """The headers that sign this request. Blocks: the first one loads the library. Raises RunFailed."""
        region = self.region(model, url)
        credentials = self._credentials(told(model, self._cloud, "profile", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"))
        requests, signing = _library("awsrequest"), _library("auth")
        request = requests.AWSRequest("POST", url, {"content-type": "application/json"}, body)
        try:
            signing.SigV4Auth(credentials.get_frozen_credentials(), "bedrock", region).add_auth(request)
        except _library("exceptions").BotoCoreError as error:
            raise _unusable(str(error)) from None
        return {name.lower(): str(value) for name, value in request.headers.items()}

    def region(self, model: Model, url: str) -> str:
        """Of the address, where it is Amazon's own; else as it is set."""
        found = _HOST.search(url)
        own = told(model, self._cloud, "region")
        return own or (found[1] if found else self._cloud.setting("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1")

    def _credentials(self, profile: str) -> Any:
        keys = [self._cloud.setting(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")]
        if keys[0] and keys[1]:
            return _library("credentials").Credentials(keys[0], keys[1], keys[2] or None)
        if profile not in self._chains:
            session = _library("session").Session(profile=profile or None)
            try:
                found = session.get_credentials()
            except _library("exceptions").BotoCoreError as error:
                raise _unusable(str(error)) from None
            if found is None:
                raise _unusable("no credentials of AWS are on this machine")
            self._chains[profile] = found
        return self._chains[profile]


def _library(part: str) -> Any:
    """A part of AWS' library. Blocks the first time."""
    try:
        return importlib.import_module(f"botocore.{part}")
    except ImportError:
        line = "AWS' logins need a package that is not installed: run `garra plugins install bedrock-converse-stream`"
        raise _unusable(f"{line}, or set AWS_BEARER_TOKEN_BEDROCK") from None


def _unusable(line: str) -> RunFailed:
    return RunFailed(Failure(FailureKind.NO_KEY, line))
