#!/bin/sh
# Measure Garra and, when PEERS_DIR says where they are, its peers: run.sh [TEST ...] [-p PRODUCTS] (--help says all).
# The results go to bench/.state/results.jsonl. The driver has a virtual environment of its own, made on the first run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -e "$here/.venv/ready" ]; then
    "${PYTHON:-python3}" -m venv "$here/.venv"
    "$here/.venv/bin/python" -m pip install -q --disable-pip-version-check --require-hashes \
        -r "$here/../requirements/bench.lock" >&2
    touch "$here/.venv/ready"
fi
cd "$here/.."
exec "$here/.venv/bin/python" -m bench "$@"
