"""Paired and waiting devices as clients are shown them."""

from __future__ import annotations

from typing import Any

from garra.core.devices import Device, Pending


def waiting(request: Pending) -> dict[str, Any]:
    """A request that waits for the owner."""
    row = {
        "requestId": request.request_id,
        "deviceId": request.device_id,
        "publicKey": request.public_key,
        "displayName": request.name,
        "platform": request.platform,
        "deviceFamily": request.family,
        "clientId": request.client_id,
        "clientMode": request.client_mode,
        "role": request.role,
        "roles": [request.role],
        "scopes": list(request.scopes),
        "silent": False,
        "isRepair": request.repair,
        "ts": request.at,
    }
    return {key: value for key, value in row.items() if value != ""}


def paired(device: Device, *, connected: bool) -> dict[str, Any]:
    """A paired device; of its tokens only that they are there."""
    roles = list(device.grants)
    row = {
        "deviceId": device.id,
        "publicKey": device.public_key,
        "displayName": device.name,
        "platform": device.platform,
        "deviceFamily": device.family,
        "clientId": device.client_id,
        "clientMode": device.client_mode,
        "role": roles[0] if roles else "",
        "roles": roles,
        "scopes": list(dict.fromkeys(scope for grant in device.grants.values() for scope in grant.scopes)),
        "approvedVia": device.approved_via,
        "createdAtMs": device.created_at,
        "approvedAtMs": device.approved_at,
        "lastSeenAtMs": device.seen_at,
        "lastSeenReason": "connect" if device.seen_at else None,
        "connected": connected,
        "tokens": [_token(role, device) for role in roles],
    }
    return {key: value for key, value in row.items() if value not in ("", None)}


def _token(role: str, device: Device) -> dict[str, Any]:
    grant = device.grants[role]
    row = {
        "role": role,
        "scopes": list(grant.scopes),
        "createdAtMs": grant.created_at,
        "rotatedAtMs": grant.rotated_at,
        "revokedAtMs": grant.revoked_at,
    }
    return {key: value for key, value in row.items() if value is not None}
