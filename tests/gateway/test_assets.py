"""The files of the web page as the gateway serves them: what the build names, nothing else, kept as long as is safe."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from garra.gateway.assets import Assets, based, elsewhere
from garra.gateway.foreign import Foreign

PAGE = '<!doctype html><base href="/"><title>Garra</title>'
CODE = "export const kelp = 1;\n" * 40


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A build of three files beside one that it does not name."""
    files = {"index.html": PAGE, "assets/main-a1.js": CODE, "favicon.svg": "<svg/>"}
    named = {}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        packed = gzip.compress(text.encode()) if len(text) > 500 else b""
        if packed:
            path.with_name(f"{path.name}.gz").write_bytes(packed)
        kind = "text/javascript; charset=utf-8" if name.endswith("js") else "image/svg+xml"
        sha = hashlib.sha256(text.encode()).hexdigest()
        named[name] = {"type": kind, "size": len(text), "gzip": len(packed), "sha256": sha}
        named[name]["immutable"] = name.startswith("assets/")
    (tmp_path / "manifest.json").write_text(json.dumps({"sources": "", "first": [], "files": named}))
    (tmp_path / "secret.txt").write_text("not of the build")
    return tmp_path


def served(root: Path | None, base: str = "") -> httpx2.AsyncClient:
    assets = Assets(root, "1.2.3")

    async def answer(request: Request) -> Response:
        return await assets.answer(request, str(request.path_params["rest"]), based(base))

    app = Starlette(routes=[Route("/{rest:path}", answer)])
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1")


async def test_a_hashed_file_comes_compressed_and_may_be_kept_for_good(built: Path) -> None:
    async with served(built) as http:
        answer = await http.get("/assets/main-a1.js")
        assert (answer.text, answer.headers["content-encoding"]) == (CODE, "gzip")
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        plain = await http.get("/assets/main-a1.js", headers={"accept-encoding": "gzip;q=0, identity"})
        assert (plain.text, "content-encoding" in plain.headers) == (CODE, False)
        again = await http.get("/favicon.svg")
        same = await http.get("/favicon.svg", headers={"if-none-match": again.headers["etag"]})
        assert (again.headers["cache-control"], same.status_code) == ("no-cache", 304)


@pytest.mark.parametrize(
    "path", ["/assets/none.js", "/assets/../secret.txt", "/favicon.ico", "/assets/%2e%2e/secret.txt"]
)
async def test_what_the_build_does_not_name_is_not_there(built: Path, path: str) -> None:
    async with served(built) as http:
        assert "not of the build" not in (await http.get(path)).text


async def test_any_other_path_is_the_page_which_is_never_kept(built: Path) -> None:
    async with served(built) as http:
        for path in ("/", "/chat/agent%3Amain%3Amain", "/secret.txt", "/manifest.json"):
            page = await http.get(path)
            assert (page.text, page.headers["cache-control"]) == (PAGE, "no-store")
            rules = page.headers["content-security-policy"]
            assert "script-src 'self'" in rules
            assert "unsafe" not in rules


async def test_below_a_base_path_the_page_knows_where_it_lives(built: Path) -> None:
    async with served(built, "garra/") as http:
        assert (await http.get("/")).headers["location"] == "/garra/"
        assert (await http.get("/garra")).headers["location"] == "/garra/"
        assert '<base href="/garra/">' in (await http.get("/garra/inbox")).text
        assert (await http.get("/garra/assets/main-a1.js")).text == CODE
        assert (await http.get("/elsewhere")).status_code == 404


async def test_another_build_in_its_place_is_seen_at_once(built: Path) -> None:
    async with served(built) as http:
        assert (await http.get("/assets/main-a1.js")).status_code == 200
        found = json.loads((built / "manifest.json").read_text())
        del found["files"]["assets/main-a1.js"]
        (built / "manifest.json").write_text(json.dumps(found))
        assert (await http.get("/assets/main-a1.js")).status_code == 404


async def test_without_a_build_there_is_a_word() -> None:
    async with served(None) as http:
        page = await http.get("/")
        assert "1.2.3" in page.text
        assert (await http.get("/assets/x.js")).status_code == 404


def test_a_base_path_is_one_whatever_its_slashes() -> None:
    assert [based(text) for text in ("", "/", "garra", "/a/../b/")] == ["", "", "/garra", "/a/b"]


def test_a_page_may_call_the_one_other_gateway_that_its_address_names() -> None:
    assert elsewhere("ws://127.0.0.1:18789/") == " ws://127.0.0.1:18789"
    assert elsewhere("wss://[::1]:5/below/it") == " wss://[::1]:5"
    for wrong in (
        "",
        "http://a.example",
        "ws://a b",
        "ws://a.example; script-src *",
        "ws://u:p@a.example",
        "ws://a/\nb",
    ):
        assert elsewhere(wrong) == ""


FOREIGN = (
    '<!doctype html><html lang="en"><link href="./a.css"><script>let a = 1;</script>'
    '<script type="module" src="./assets/m.js"></script>'
)


async def test_another_page_is_served_from_its_folder_and_nothing_out_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("not of the page")
    root = tmp_path / "page"
    (root / "assets").mkdir(parents=True)
    for name, text in {"index.html": FOREIGN, "assets/m.js": CODE, "a.css": "p{}", "run.py": "no"}.items():
        (root / name).write_text(text)
    (root / "assets" / "m.js.gz").write_bytes(gzip.compress(CODE.encode()))
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")

    async def answer(request: Request) -> Response:
        return await Foreign(root).answer(request, str(request.path_params["rest"]), "/ui")

    app = Starlette(routes=[Route("/{rest:path}", answer)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as http:
        page = await http.get("/ui/chat/main")
        assert 'src="/ui/assets/m.js"' in page.text
        assert 'data-openclaw-control-ui-base-path="/ui"' in page.text
        hashed = base64.b64encode(hashlib.sha256(b"let a = 1;").digest()).decode()
        assert f"script-src 'self' 'sha256-{hashed}';" in page.headers["content-security-policy"]
        assert (await http.get("/")).headers["location"] == "/ui/"
        code = await http.get("/ui/assets/m.js")
        assert (code.text, code.headers["content-encoding"]) == (CODE, "gzip")
        for name in ("out.txt", "run.py", "..%2fsecret.txt", "none.css"):
            got = await http.get(f"/ui/{name}")
            assert (got.status_code, "not of the page" in got.text) == (404, False), name
