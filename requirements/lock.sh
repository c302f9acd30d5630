#!/bin/sh
# Makes the locks anew, with uv: run.lock, dev.lock, the one of a server that tests play against, and one for each
# extra: a channel or a tool that needs packages of others. What is pinned already stays as it is, unless it no longer
# fits; with --upgrade everything becomes the newest.
# Those of the extras agree with run.lock and with each other, and hold wheels only, so that nobody needs a compiler.
set -eu
cd "$(dirname "$0")/.."
UV=${UV:-uv}
PYTHON=${PYTHON:-python3}
FORM="--universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --no-annotate -q ${1:-}"
extras() {
  "$PYTHON" - "$@" <<'READ'
import sys, tomllib
found = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
wanted = sys.argv[1:]
print("\n".join(line for name in wanted for line in found[name]) if wanted else "\n".join(sorted(found)))
READ
}
"$UV" pip compile pyproject.toml $FORM -o requirements/run.lock
"$UV" pip compile pyproject.toml --group dev $FORM -c requirements/run.lock -o requirements/dev.lock
echo 'matrix-synapse>=1.163' | "$UV" pip compile - $FORM --only-binary :all: -o requirements/synapse.lock
names=$(extras)
all=$(mktemp)
trap 'rm -f "$all"' EXIT
grep -hE '^[a-z0-9].*==' requirements/extras/*.lock | sed 's/ *\\$//' | sort -u >"$all"
extras $names | "$UV" pip compile - $FORM --only-binary :all: -c requirements/dev.lock -o "$all"
for name in $names; do
  extras "$name" | "$UV" pip compile - $FORM --only-binary :all: -c "$all" -o "requirements/extras/$name.lock"
done
