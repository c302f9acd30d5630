"""Does a gateway run on this state folder; if not, is its port free."""

from __future__ import annotations

import socket

from garra.checks.finding import Finding, Ground
from garra.io.lock import holder
from garra.io.process.listening import listener


def check(ground: Ground) -> list[Finding]:
    running = holder(ground.paths.lock)
    if running is not None:
        what = f"a gateway runs here (process {running.get('pid', '?')}, port {running.get('port', '?')})"
        return [Finding("gateway", "ok", what, str(ground.paths.lock))]
    port = ground.snapshot.config.gateway.port
    with socket.socket() as trial:
        trial.settimeout(0.5)
        taken = trial.connect_ex(("127.0.0.1", port)) == 0
    if taken:
        who = listener(port)
        named = f"{who[1]} (process {who[0]})" if who else "another program"
        how = f"end that program, or choose another port: garra config set gateway.port {port + 1}"
        return [Finding("gateway", "bad", f"port {port} belongs to {named}", "gateway.port", how)]
    return [Finding("gateway", "ok", f"no gateway runs; port {port} is free", "", "garra gateway run starts one")]
