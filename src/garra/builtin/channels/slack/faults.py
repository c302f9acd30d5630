"""What a refusal of Slack means for a message, and for the link. Pure tables."""

from __future__ import annotations

from collections.abc import Mapping

from garra.builtin.channels.slack.api import Refused
from garra.sdk.channel import Fault, LinkLost, LinkRefused, SendFailed

AUTH: Mapping[str, str] = {
    "invalid_auth": "the token is wrong or belongs to another app",
    "not_authed": "no token is set",
    "token_revoked": "the token was revoked: install the app to the workspace anew",
    "token_expired": "the token has expired: install the app to the workspace anew",
    "account_inactive": "the bot's user was removed, or the app uninstalled: install it anew",
    "user_removed_from_team": "the bot was removed from the workspace: install the app anew",
    "team_disabled": "the workspace is disabled",
    "team_access_not_granted": "the workspace has not let this app in",
    "org_login_required": "the workspace is being moved: install the app anew afterwards",
    "enterprise_is_restricted": "the organisation allows no calls from here",
    "access_denied": "the workspace allows no calls from here",
    "ip_not_allowed": "the workspace allows no calls from this address",
    "not_allowed_token_type": "it is a token of another kind: botToken begins with xoxb-, appToken with xapp-",
    "app_token_required": "appToken must be an app-level token, xapp-…",
    "no_permission": "the token lacks a right; appToken needs the scope connections:write",
    "missing_scope": "the token lacks a scope; appToken needs connections:write",
}
_FAULTS: Mapping[str, Fault] = {
    **dict.fromkeys(
        ("channel_not_found", "not_in_channel", "is_archived", "user_not_found", "users_not_found"), "gone"
    ),
    **dict.fromkeys(("message_not_found", "thread_not_found", "channel_is_archived", "user_disabled"), "gone"),
    **dict.fromkeys(("msg_too_long", "message_too_long"), "too_long"),
    **dict.fromkeys(("ratelimited", "rate_limited", "message_limit_exceeded", "service_unavailable"), "passing"),
    **dict.fromkeys(("request_timeout", "team_added_to_org"), "passing"),
    **dict.fromkeys(("fatal_error", "internal_error"), "unsure"),
    **dict.fromkeys(("file_too_large", "storage_limit_reached"), "too_large"),
    "missing_scope": "refused",
    "no_permission": "refused",
    "access_denied": "refused",
}
DISABLED = (
    "Slack says Socket Mode is off (link_disabled). Switch it on at https://api.slack.com/apps, your app, Socket Mode."
)
SHARED = "if another program uses the same appToken, each of the two gets a part of the messages only"
CROWDED = "Slack says the app has too many connections (ten at most): is it running elsewhere with the same appToken?"


def send_failed(refused: Refused) -> SendFailed:
    """What became of the message."""
    return SendFailed(_fault(refused), refused.message, refused.retry_after_s)


def fetch_failed(refused: Refused) -> SendFailed:
    """What became of a file that was asked for: asking again does no harm, so nothing is unsure."""
    fault: Fault = "gone" if refused.status == 404 or refused.word == "file_not_found" else _fault(refused)
    return SendFailed("passing" if fault == "unsure" else fault, refused.message, refused.retry_after_s)


def _fault(refused: Refused) -> Fault:
    if (known := _FAULTS.get(refused.word)) is not None:
        return known
    if refused.word in AUTH:
        return "auth"
    match refused.status:
        case 0:
            return "passing" if refused.kind in {"connect", "refused"} else "unsure"
        case 413:
            return "too_large"
        case status if status >= 500:
            return "unsure"
        case _:
            return "refused"


def link_lost(refused: Refused) -> LinkLost | LinkRefused:
    """What became of the link, when a call it cannot do without was refused."""
    if refused.word in AUTH:
        return LinkRefused(f"{refused.message}: {AUTH[refused.word]}.")
    if refused.status == 404 and not refused.word:
        return LinkRefused(
            "Slack answers 404: apiRoot is not the address of its Web API, such as https://slack.com/api."
        )
    wait = refused.retry_after_s
    return LinkLost(refused.message, details={"retryAfterS": wait} if wait else None)
