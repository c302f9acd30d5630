"""Logging in with a code, turns by that login through the running gateway, its renewal, and a live probe."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from garra.testing.issuer import Issuer
from garra.testing.model_server import Fail, ModelServer
from tests.e2e.resident import Resident, resident, words

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]


def providers(model: ModelServer, issuer: Issuer) -> dict[str, Any]:
    login = {
        "kind": "oauth", "clientId": "client", "tokenUrl": f"{issuer.url}/token", "deviceUrl": f"{issuer.url}/device",
        "route": {"headers": {"x-account": "{accountId}"}},
    }  # fmt: skip
    row = {"id": "fake", "name": "fake"}
    own = {"api": "openai-completions", "baseUrl": f"{model.url}/v1", "models": [row], "logins": {"sso": login}}
    return {"providers": {"corp": own}}


@pytest.mark.req("MODEL-05", "MODEL-21")
async def test_a_device_logs_in_and_the_gateway_renews_its_login(tmp_path: Path) -> None:
    async with ModelServer() as model, Issuer(interval=1, expires_in=60) as issuer:
        issuer.grants = ["pending", "ok"]
        more = {"models": providers(model, issuer), "agents": {"defaults": {"model": "corp/fake"}}}
        async with resident(tmp_path, model.url, more) as gateway, gateway.client() as client:
            login = await gateway.run("models", "auth", "login", "--provider", "corp", "--device-code", "--json")
            assert (login[0], json.loads(login[1])["type"]) == (0, "oauth"), login[2]
            assert "AB-CD" in login[2]
            listed = await gateway.run("models", "auth", "list", "--json")
            assert [each["email"] for each in json.loads(listed[1])["profiles"]] == ["a@example.org"]
            await client.call("models.authRefresh", {"operation": "login"})
            issuer.expires_in = 3_600
            for name in "abc":
                assert "hello" in words(await client.say("hello", f"agent:main:{name}"))
            posts = [each for each in model.requests if each.method == "POST"]
            assert {each.key for each in posts} <= issuer.access
            assert len({each.key for each in posts}) == 1
            assert {each.headers.get("x-account") for each in posts} == {"acc"}
            assert issuer.uses["refresh_token"] == 1
            told = await client.call("models.authStatus")
            corp = next(each for each in told["providers"] if each["provider"] == "corp")
            assert (corp["status"], corp["profiles"][0]["type"]) == ("ok", "oauth")
            probe = await gateway.run("models", "probe", "--probe-provider", "corp", "--json")
            assert probe[0] == 0, probe
            assert [each["status"] for each in json.loads(probe[1])["results"]] == ["ok"], probe
            gone = await client.call("models.authLogout", {"provider": "corp"})
            assert len(gone["removedProfiles"]) == 1
            key = "corp-key-0123456789"
            saved = await client.call("models.authSetApiKey", {"provider": "corp", "apiKey": key})
            assert saved == {"provider": "corp", "profileId": "corp:manual"}
            await client.call("models.authOrderSet", {"provider": "corp", "profileIds": ["corp:manual"]})
            assert "hello" in words(await client.say("hello", "agent:main:d"))
            assert model.requests[-1].key == key
            status = await gateway.run("models", "status", "--probe", "--probe-provider", "corp", "--json")
            assert [each["status"] for each in json.loads(status[1])["auth"]["probes"]] == ["ok"], status
            assert key not in gateway.log() + status[1]
            everything = json.dumps([told, gone, login, listed, probe])
            assert not any(secret in everything for secret in [*issuer.access, *issuer.live, *issuer.spent])
            assert not any(secret in gateway.log() for secret in [*issuer.access, *issuer.live])


async def test_the_address_is_pasted_over_ssh(tmp_path: Path) -> None:
    async with ModelServer() as model, Issuer() as issuer:
        config = {"models": providers(model, issuer)}
        login = config["models"]["providers"]["corp"]["logins"]["sso"]
        login |= {"authorizeUrl": f"{issuer.url}/authorize", "redirectUrl": "http://localhost:0/auth/callback"}
        (tmp_path / "garra.json").write_text(json.dumps(config))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "garra", "models", "auth", "login", "--provider", "corp", "--method", "sso",
            env={"HOME": str(tmp_path), "GARRA_STATE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        assert process.stdin is not None
        url = ""
        while not url.startswith("http"):
            url = (await process.stderr.readline()).decode().strip()
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        back = f"{asked['redirect_uri']}?code={issuer.allowed(url)}&state={asked['state']}"
        process.stdin.write(f"what is this?\n{back}\n".encode())
        out, err = await process.communicate()
        assert process.returncode == 0, err
        assert out.decode().startswith("corp:a@example.org is kept (oauth as a@example.org).")
        assert b"paste the whole address" in err


async def test_a_login_is_tried_before_it_is_taken(tmp_path: Path) -> None:
    async with ModelServer() as model:
        row = {"id": "fake", "name": "fake"}
        own = {"api": "openai-completions", "baseUrl": f"{model.url}/v1", "models": [row]}
        config = {"models": {"providers": {"corp": own}}}
        program = Resident(tmp_path, model.url, config)
        program.write()
        for name in ("home", "work"):
            given = f"sk-{name}\n".encode()
            pasted = ("models", "auth", "paste-api-key", "--provider", "corp", "--profile-id", name)
            assert (await program.run(*pasted, given=given))[0] == 0
        await program.run("models", "auth", "order", "set", "corp:home", "--provider", "corp")
        model.then(Fail(401, "no such key"))
        code, out, err = await program.run("models", "auth", "activate", "corp:work")
        assert (code, out) == (1, "")
        assert "corp/fake by corp:work: auth: " in err
        assert err.endswith("All stays as it was\n")
        order = ("models", "auth", "order", "get", "--provider", "corp")
        assert (await program.run(*order))[1] == "corp:home\n"
        assert "it rests after a fault" in (await program.run("models", "auth", "activate", "corp:work"))[2]
        pasted = ("models", "auth", "paste-api-key", "--provider", "corp", "--profile-id", "work")
        await program.run(*pasted, given=b"sk-right\n")
        code, out, err = await program.run("models", "auth", "activate", "corp:work")
        assert (code, err) == (0, ""), err
        assert out.endswith("corp:work is taken first. corp/fake answers from now on.\n")
        assert model.requests[-1].key == "sk-right"
        assert (await program.run(*order))[1] == "corp:work\ncorp:home\n"
        code, out, _ = await program.run("models", "auth", "activate", "corp:home", "--json")
        assert json.loads(out)["order"] == ["corp:home", "corp:work"]
        assert "defaultModel" not in json.loads(out), "a model of it answers already"
