"""A program that stands in for Docker and Podman: it notes how it is called and does what their manuals say.

It knows `version`, `run`, `commit`, `ps`, `inspect`, `rm` and `image`; containers and images are files, and nothing is
shut in.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCRIPT = r"""#!{python} -IS
import json, os, signal, subprocess, sys
HERE = {folder!r}
WITH_VALUE = {{
    "--pull", "--name", "--hostname", "--entrypoint", "--label", "--cap-drop", "--security-opt", "--network", "--user",
    "--userns", "--ipc", "--pids-limit", "--memory", "--memory-swap", "--cpus", "--ulimit", "--gpus", "--tmpfs",
    "--mount", "--dns", "--add-host", "--env", "--workdir", "--filter", "--format", "--type",
}}
def path(kind, name):
    return os.path.join(HERE, kind + "-" + name.replace("/", "_").replace(":", "_"))
def every(kind):
    names = sorted(name for name in os.listdir(HERE) if name.startswith(kind + "-"))
    return [json.load(open(os.path.join(HERE, name))) for name in names]
def put(kind, made):
    with open(path(kind, made["Id"]), "w") as file:
        json.dump(made, file)
def find(kind, name):
    for each in every(kind):
        if name in (each["Id"], each.get("Name", "").lstrip("/"), *each.get("RepoTags", [])):
            return each
    sys.stderr.write("Error: No such %s: %s\n" % (kind, name))
    sys.exit(1)
def read(words):
    flags, rest = {{}}, []
    while words:
        word = words.pop(0)
        if word == "--":
            return flags, rest + words
        if word in WITH_VALUE:
            flags.setdefault(word, []).append(words.pop(0))
        elif word.startswith("--"):
            flags[word] = True
        else:
            rest.append(word)
    return flags, rest
def labels(flags):
    return dict(each.split("=", 1) for each in flags.get("--label", []))
def marked(flags, found):
    wanted = [each.split("=", 1)[1] for each in flags.get("--filter", [])]
    own = found["Config"]["Labels"]
    return all(own.get(each.split("=", 1)[0]) == each.split("=", 1)[1] for each in wanted)
with open(os.path.join(HERE, "calls"), "a") as file:
    file.write(json.dumps([sys.argv[1:], dict(os.environ)]) + "\n")
verb, words = sys.argv[1], sys.argv[2:]
if verb == "image":
    verb, words = "image " + words[0], words[1:]
flags, rest = read(words)
if verb == "run":
    image, argv = rest[0], rest[1:]
    name = flags["--name"][0]
    made = {{
        "Id": name.encode().hex()[:60], "Name": "/" + name, "Created": "2026-01-02T03:04:05.123456789Z",
        "State": {{"Running": True}}, "Config": {{"Labels": labels(flags), "Image": image}},
    }}
    put("container", made)
    env = dict(each.split("=", 1) for each in flags.get("--env", []))
    child = subprocess.Popen(argv, cwd=flags["--workdir"][0], env=dict(env, PATH=os.environ["PATH"], SETUP=HERE))
    code = child.wait()
    if flags.get("--rm"):
        os.path.exists(path("container", made["Id"])) and os.unlink(path("container", made["Id"]))
    else:
        made["State"]["Running"] = False
        put("container", made)
    sys.exit(code)
if verb == "commit":
    made = find("container", rest[0])
    put("image", {{"Id": "sha256:" + rest[1].encode().hex()[:56], "RepoTags": [rest[1]], "Config": made["Config"]}})
if verb == "ps":
    print("\n".join(each["Id"] for each in every("container") if marked(flags, each)))
if verb == "inspect":
    print(json.dumps([find("container", each) for each in rest], indent=4))
if verb == "image ls":
    print("\n".join(each["Id"] for each in every("image") if marked(flags, each)))
if verb == "image inspect":
    found = find("image", rest[0])
    print(found["Config"]["Labels"].get("garra.scope", "") if "scope" in flags["--format"][0] else found["Id"])
if verb in ("rm", "image rm"):
    kind = "container" if verb == "rm" else "image"
    for each in rest:
        known = [name for one in every(kind) for name in (one["Id"], one.get("Name", "").lstrip("/"))]
        if flags.get("--force") and each not in known:
            continue
        os.unlink(path(kind, find(kind, each)["Id"]))
        print(each)
"""


class FakeEngine:
    """One such program, and what it was told."""

    def __init__(self, folder: Path, name: str = "docker") -> None:
        self.folder, self.program = folder / f"{name}-state", folder / name
        self.folder.mkdir(parents=True)
        self.program.write_text(SCRIPT.format(python=sys.executable, folder=str(self.folder)))
        self.program.chmod(0o755)

    def calls(self, verb: str = "") -> list[list[str]]:
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        called: list[list[str]] = [json.loads(line)[0] for line in lines]
        return [words for words in called if " ".join(words).startswith(verb)]

    def environments(self) -> list[dict[str, str]]:
        return [json.loads(line)[1] for line in (self.folder / "calls").read_text().splitlines()]

    def made(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(file.read_text()) for file in sorted(self.folder.glob(f"{kind}-*"))]
