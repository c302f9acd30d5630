"""A process that has turns: `python -m tests.domains.models.renewing STATE TURNS ISSUER`.

It makes that many calls for the login at once, and prints the access that each was given. ISSUER is the address.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from garra.config.sections import Config
from garra.core import oauth as pure
from garra.core.oauth import Issuer
from garra.core.profiles import Profile
from garra.domains.models.catalog import Entry
from garra.domains.models.logins import Logins
from garra.domains.models.oauth import OAuth
from garra.domains.models.profiles import Asked, Profiles
from garra.domains.models.refresh import Renewals, Sources
from garra.io.clock import SystemClock
from garra.io.http import GuardedHttp
from garra.io.store.db import Database
from garra.io.tasks import Tasks
from garra.sdk.ports import DIRECT, Via
from garra.sdk.provider import Provider

ENTRY = Entry(Provider("fake", "Fake", "openai-completions"))


def issuer(url: str) -> Issuer:
    return pure.issuer({"client_id": "client", "token_url": f"{url}/token"}, "test")


async def turns(state: Path, count: int, url: str) -> list[str | None]:
    """What as many turns as that get, all at once."""
    clock, http, db = SystemClock(), GuardedHttp(), Database(state / "state.db")
    try:
        async with Tasks() as tasks:
            logins = Logins(db, clock)
            own = issuer(url)

            def source(_: Profile) -> tuple[Issuer, Via]:
                return own, DIRECT

            ask = OAuth(http, clock, tasks).ask
            renewals = Renewals(logins, ask, clock, tasks, locks=state / "locks", sources=Sources(source))
            profiles = Profiles(Config, clock, tasks, logins=logins, fresh=renewals.fresh)
            asked = [Asked(ENTRY, "m", {}, f"session-{number}") for number in range(count)]
            found = await asyncio.gather(*(profiles.credential(each) for each in asked))
            await renewals.close()
            return [each.secret for each in found]
    finally:
        await db.close()
        await http.close()


def main() -> None:
    state, count, url = sys.argv[1:]
    sys.stdin.readline()  # so that several begin at one moment
    sys.stdout.write(json.dumps(asyncio.run(turns(Path(state), int(count), url))))


if __name__ == "__main__":
    main()
