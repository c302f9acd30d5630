"""What the clouds' families need besides their protocol: addresses, names, and ways to log in."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from garra.core.messages import Assistant
from garra.testing.model_server import Raw
from tests.contracts.model.traffic import Cloud, Stand, stand

KEY = rsa.generate_private_key(65_537, 2_048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()


async def ask(at: Stand, key: str | None, **model: Any) -> Assistant:
    at.plays("text")
    return await at.api.stream(at.request(model=replace(at.model, **model)), key).result()


async def why(at: Stand, key: str | None, **model: Any) -> str:
    found = await at.api.stream(at.request(model=replace(at.model, **model)), key).result()
    assert found.stop == "error"
    return found.error or ""


async def test_azure_is_found_by_what_its_owner_set() -> None:
    settings = {"AZURE_OPENAI_API_VERSION": "2026-10-01-preview", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP": "x=y, m=mine"}
    async with stand("azure-openai-responses", Cloud(settings)) as at:
        await ask(at, "k")
        seen = at.server.requests[-1]
        assert seen.path == "/openai/v1/responses?api-version=2026-10-01-preview"
        assert seen.body["model"] == "mine"
        compat = {"params": {"azureApiVersion": "v2", "azureDeploymentName": "own"}}
        await ask(at, "k", base_url=at.server.url + "/openai", compat=compat)
        assert at.server.requests[-1].path == "/openai/v1/responses?api-version=v2"
        assert at.asked()["model"] == "own"


async def test_azure_without_an_address_says_what_to_set() -> None:
    async with stand("azure-openai-responses") as at:
        line = await why(at, "k", base_url="https://{AZURE_OPENAI_RESOURCE_NAME}.openai.azure.com/openai/v1")
        assert line == "v/m: set AZURE_OPENAI_RESOURCE_NAME, or models.providers.v.baseUrl"
    settings: dict[str, str] = {}
    async with stand("azure-openai-responses", Cloud(settings)) as at:
        settings["AZURE_OPENAI_BASE_URL"] = at.server.url + "/openai/v1/"
        await ask(at, "k", base_url="https://{AZURE_OPENAI_RESOURCE_NAME}.openai.azure.com/openai/v1")
        assert at.server.requests[-1].path == "/openai/v1/responses?api-version=v1"


def login(url: str, **more: str) -> bytes:
    told = {"type": "service_account", "client_email": "bot@p.iam", "private_key_id": "1", "private_key": PEM}
    return json.dumps({**told, "project_id": "proj", "token_uri": url + "/token", **more}).encode()


def token(life: int = 3_600) -> Raw:
    said = json.dumps({"access_token": "ya29.x", "expires_in": life, "token_type": "Bearer"}).encode()
    return Raw((said,), kind="application/json")


async def test_vertex_logs_in_by_a_service_account() -> None:
    files: dict[str, bytes] = {}
    settings = {"GOOGLE_APPLICATION_CREDENTIALS": "/a.json", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
    async with stand("google-vertex", Cloud(settings, files)) as at:
        files["/a.json"] = login(at.server.url)
        at.server.then(token())
        assert (await ask(at, None)).text == "Paris is the capital of France."
        asked, called = at.server.requests
        form = parse_qs(asked.raw.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        head, claim, signature = (_decoded(part) for part in form["assertion"][0].split("."))
        signed = form["assertion"][0].rpartition(".")[0].encode()
        KEY.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
        assert json.loads(head) == {"alg": "RS256", "typ": "JWT", "kid": "1"}
        told = json.loads(claim)
        assert (told["iss"], told["aud"], told["exp"] - told["iat"]) == ("bot@p.iam", at.server.url + "/token", 3_600)
        where = "/v1/projects/proj/locations/europe-west4/publishers/google/models/m:streamGenerateContent?alt=sse"
        assert (called.path, called.headers["authorization"]) == (where, "Bearer ya29.x")
        await ask(at, None)
        assert [seen.path for seen in at.server.requests].count("/token") == 1


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


async def test_vertex_takes_the_login_of_gcloud_and_renews_it() -> None:
    files: dict[str, bytes] = {}
    async with stand("google-vertex", Cloud({"GOOGLE_CLOUD_PROJECT": "mine"}, files)) as at:
        user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
        known = {**user, "token_uri": at.server.url + "/token"}
        files["~/.config/gcloud/application_default_credentials.json"] = json.dumps(known).encode()
        for _ in range(2):
            at.server.then(token(life=60))
            await ask(at, None)
        paths = [seen.path for seen in at.server.requests]
        assert paths.count("/token") == 2
        assert "/projects/mine/locations/global/" in paths[-1]
        form = parse_qs(at.server.requests[0].raw.decode())
        assert (form["refresh_token"], form["grant_type"]) == (["r"], ["refresh_token"])


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (None, "GOOGLE_APPLICATION_CREDENTIALS names /a.json, which cannot be read"),
        (b"x", "/a.json is no JSON"),
        (b'{"type":"external_account"}', "a login of the kind 'external_account'"),
        (login("http://x", private_key="no key"), "the private key of the service account cannot be read"),
    ],
)
async def test_a_login_that_cannot_be_used_is_told(data: bytes | None, line: str) -> None:
    files = {"/a.json": data} if data is not None else {}
    async with stand("google-vertex", Cloud({"GOOGLE_APPLICATION_CREDENTIALS": "/a.json"}, files)) as at:
        assert line in await why(at, None)
        assert not at.server.requests


async def test_a_refused_login_and_a_missing_project_are_told() -> None:
    files: dict[str, bytes] = {}
    async with stand("google-vertex", Cloud({"GOOGLE_APPLICATION_CREDENTIALS": "/a.json"}, files)) as at:
        files["/a.json"] = login(at.server.url, project_id="")
        said = json.dumps({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}).encode()
        at.server.then(Raw((said,), 400, "application/json"))
        assert "Google Cloud gave no token" in await why(at, None)
        at.server.then(token())
        assert "set GOOGLE_CLOUD_PROJECT" in await why(at, None)
        assert len(at.server.requests) == 2


async def test_a_server_of_logins_that_is_not_there() -> None:
    files = {"/a.json": login("http://127.0.0.1:9")}
    async with stand("google-vertex", Cloud({"GOOGLE_APPLICATION_CREDENTIALS": "/a.json"}, files)) as at:
        assert "check the address and the network" in await why(at, None)


AWS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI", "AWS_SESSION_TOKEN": "tok"}


async def test_bedrock_signs_by_the_owners_credentials() -> None:
    pytest.importorskip("botocore")
    async with stand("bedrock-converse-stream", Cloud({**AWS, "AWS_REGION": "eu-central-1"})) as at:
        assert (await ask(at, None)).text == "Paris is the capital of France."
        sent = at.server.requests[-1].headers
        assert sent["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        assert "/eu-central-1/bedrock/aws4_request" in sent["authorization"]
        assert sent["x-amz-security-token"] == "tok"
        assert "x-amz-date" in sent
        await ask(at, None, compat={"params": {"region": "us-west-2"}})
        assert "/us-west-2/bedrock/" in at.server.requests[-1].headers["authorization"]


async def test_bedrock_without_a_login_says_so() -> None:
    async with stand("bedrock-converse-stream", Cloud({"AWS_PROFILE": "no-such-profile-anywhere"})) as at:
        found = await at.api.stream(at.request(), None).result()
        assert found.stop == "error"
        assert not at.server.requests


async def test_bedrock_marks_what_may_be_cached() -> None:
    async with stand("bedrock-converse-stream") as at:
        point = {"cachePoint": {"type": "default"}}
        await ask(at, "k")
        body = at.asked()
        assert body["system"][-1] == body["toolConfig"]["tools"][-1] == body["messages"][-1]["content"][-1] == point
        await ask(at, "k", compat={"params": {"cacheRetention": "none"}})
        assert b"cachePoint" not in at.server.requests[-1].raw
        await ask(at, "k", compat={"params": {"cacheRetention": "long"}})
        assert at.asked()["system"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}
        await ask(at, "k", id="amazon.nova-pro-v1:0")
        assert b"cachePoint" not in at.server.requests[-1].raw
