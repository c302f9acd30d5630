"""Logging in at an issuer: in a browser whose answer comes to this machine or is pasted, or with a code that a person
enters elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from garra.core import letin, oauth
from garra.core.errors import Forbidden, Unavailable, UserError
from garra.core.letin import Device, GiveUp, Granted
from garra.core.oauth import Issuer, Refused, Ticket, Tokens
from garra.io.http.landing import Landing
from garra.sdk.ports import DIRECT, Clock, Http, Spawn, Via

ASK_S: Final = 30.0
WAIT_S: Final = 900.0
LARGEST: Final = 256 << 10

Show = Callable[[str], Awaitable[None]]
"""Shows the address that a person opens."""
Paste = Callable[[str], Awaitable[str]]
"""Gives what a person pastes; it waits for as long as nobody does. It is handed what was wrong with the last one."""


class OAuth:
    """`via` is the way out to issuers where a call names none."""

    def __init__(self, http: Http, clock: Clock, spawn: Spawn, via: Via = DIRECT) -> None:
        self._http, self._clock, self._spawn, self._via = http, clock, spawn, via

    async def ask(self, issuer: Issuer, form: Mapping[str, str], via: Via | None = None) -> Tokens | Refused:
        """Ask the token address. An answer that never comes is `passing`."""
        try:
            status, body = await self._post(issuer.token_url, form, as_json=issuer.json, via=via)
        except Unavailable as gone:
            return Refused("passing", gone.message)
        return oauth.tokens(status, body, self._clock.now_ms())

    async def browser(self, issuer: Issuer, show: Show, paste: Paste) -> Tokens:
        """The browser's answer or the pasted one, whichever is first. Raises UserError: refused, or none of ours."""
        if not issuer.authorize_url:
            raise UserError("this login has no browser way; use --device-code")
        ticket = Ticket(secrets.token_urlsafe(24), secrets.token_urlsafe(48), issuer.redirect_url)
        landing = Landing(lambda query: oauth.code(query, ticket))
        try:
            with suppress(Unavailable):  # then it is pasted
                ticket = replace(ticket, redirect_url=await landing.open(issuer.redirect_url))
            await show(oauth.address(issuer, ticket))
            async with asyncio.timeout(WAIT_S):
                code = await self._first(landing.code(), _pasted(paste, ticket))
        except TimeoutError:
            raise UserError("nobody came back from the browser in time; begin again") from None
        finally:
            landing.close()
        return self._given(await self.ask(issuer, oauth.code_form(issuer, code, ticket)))

    async def device(self, issuer: Issuer, show: Callable[[Device], Awaitable[None]]) -> Tokens:
        """With a code that is entered elsewhere. Raises UserError: refused, denied, not in time."""
        if not issuer.device_url:
            raise UserError("this login knows no device codes; log in with a browser")
        form = letin.device_form(issuer)
        status, body = await self._post(issuer.device_url, form, as_json=_json(issuer))
        device = letin.device(issuer, status, body, self._clock.now_ms())
        if isinstance(device, Refused):
            raise UserError(device.words)
        await show(device)
        state = letin.waiting(device)
        pause_ms = state.interval_ms
        while True:
            await self._clock.sleep(pause_ms / 1_000)
            answer = await self._polled(issuer, device)
            if not isinstance(answer, Refused):
                return await self._let_in(issuer, answer)
            state, effect = letin.step(state, answer, self._clock.now_ms())
            if isinstance(effect, GiveUp):
                raise UserError(effect.words)
            pause_ms = effect.after_ms

    async def _polled(self, issuer: Issuer, device: Device) -> Tokens | Granted | Refused:
        url = issuer.device_token_url or issuer.token_url
        try:
            status, body = await self._post(url, letin.poll_form(issuer, device), as_json=_json(issuer))
        except Unavailable as gone:
            return Refused("passing", gone.message)
        return letin.polled(issuer, status, body, self._clock.now_ms())

    async def _let_in(self, issuer: Issuer, answer: Tokens | Granted) -> Tokens:
        if isinstance(answer, Tokens):
            return answer
        ticket = Ticket("", answer.verifier, issuer.device_redirect_url or issuer.redirect_url)
        return self._given(await self.ask(issuer, oauth.code_form(issuer, answer.code, ticket)))

    def _given(self, answer: Tokens | Refused) -> Tokens:
        if isinstance(answer, Refused):
            raise UserError(answer.words)
        return answer

    async def _first(self, *works: Coroutine[Any, Any, str]) -> str:
        """What the first of several gives; the others are stopped. Raises what that one raised."""
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def settle(work: Coroutine[Any, Any, str]) -> None:
            try:
                code = await work
            except UserError as error:
                if not found.done():
                    found.set_exception(error)
            else:
                if not found.done():
                    found.set_result(code)

        tasks = [self._spawn(settle(work), "log in") for work in works]
        try:
            return await found
        finally:
            for task in tasks:
                task.cancel()

    async def _post(
        self, url: str, form: Mapping[str, str], *, as_json: bool, via: Via | None = None
    ) -> tuple[int, bytes]:
        """Raises Unavailable."""
        if not oauth.safe(url):
            raise UserError(f"{url} is no https address: no login goes there")
        kind = "application/json" if as_json else "application/x-www-form-urlencoded"
        body = json.dumps(dict(form)) if as_json else urlencode(form)
        headers = {"content-type": kind, "accept": "application/json"}
        asked = self._http.stream("POST", url, headers=headers, body=body.encode(), timeout=ASK_S, via=via or self._via)
        async with asyncio.timeout(ASK_S * 2), asked as answer:
            return answer.status, await answer.read(LARGEST)


def _json(issuer: Issuer) -> bool:
    return issuer.json or issuer.style == "openai"


async def _pasted(paste: Paste, ticket: Ticket) -> str:
    """Raises UserError where the issuer refused; what is none of its answers is asked for again."""
    wrong = ""
    while True:
        try:
            return oauth.pasted(await paste(wrong), ticket)
        except Forbidden as error:
            wrong = error.message
