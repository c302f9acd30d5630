"""The stack without Garra: the same server, validation and HTTP client, ready and doing nothing. bare.py PORT

Run by the interpreter Garra runs on. A WebSocket here answers each message with the same message; `GET /healthz` is ok.
"""

from __future__ import annotations

import sys

import httpx2
import pydantic
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect


class Settings(pydantic.BaseModel):
    """One validated model, so that the validator is loaded and not only named."""

    port: int


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        return


async def healthz(_: Request) -> JSONResponse:
    return JSONResponse({"ok": True})


def main() -> None:
    settings = Settings.model_validate({"port": sys.argv[1]})
    app = Starlette(routes=[Route("/healthz", healthz), WebSocketRoute("/", echo)])
    app.state.http = httpx2.AsyncClient()
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=settings.port,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ws_ping_interval=None,
        log_level="critical",
    )


if __name__ == "__main__":
    main()
