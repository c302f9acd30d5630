"""Looks for a regular expression in texts, as a program of its own: a bad pattern costs this process, and no other.

Standard input: a JSON line `{"pattern", "limit", "texts": [[name, size], …]}`, then the bytes of the texts in order.
Standard output: one JSON line per hit, `[name, line, text]`, or `{"error": …}`.
"""

from __future__ import annotations

import json
import re
import sys

LONGEST_LINE = 400


def main() -> None:
    asked = json.loads(sys.stdin.buffer.readline())
    try:
        pattern = re.compile(asked["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return
    left = asked["limit"]
    for name, size in asked["texts"]:
        text = sys.stdin.buffer.read(size).decode(errors="replace")
        for number, line in enumerate(text.split("\n"), 1):
            if pattern.search(line):
                sys.stdout.write(json.dumps([name, number, line.rstrip("\r")[:LONGEST_LINE]]) + "\n")
                left -= 1
                if left <= 0:
                    return
        sys.stdout.flush()


if __name__ == "__main__":
    main()
