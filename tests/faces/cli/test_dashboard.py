"""The address of the web page."""

from __future__ import annotations

from garra.client.target import Target
from garra.faces.cli.dashboard import address


def test_the_secret_stands_where_no_server_is_told_it() -> None:
    found = address(Target("ws://127.0.0.1:18789/", token="a b/c"), {})
    assert found["url"] == "http://127.0.0.1:18789/#token=a%20b%2Fc"
    assert (found["httpUrl"], found["tokenIncluded"], found["port"]) == ("http://127.0.0.1:18789/", True, 18789)


def test_the_base_path_is_part_of_it_and_no_secret_is_none() -> None:
    config = {"gateway": {"controlUi": {"basePath": "/garra/"}}}
    found = address(Target("wss://home.example/"), config)
    assert (found["url"], found["tokenIncluded"]) == ("https://home.example/garra/", False)
    assert address(Target("ws://h:1"), {"gateway": {"controlUi": {"basePath": 7}}})["httpUrl"] == "http://h:1/"
