"""`garra completion SHELL`: a completion script, made from the table of commands."""

from __future__ import annotations

from collections.abc import Sequence

from garra.faces.cli import brought, output, parsing, table
from garra.faces.cli.table import Command

HOW = """\
bash:  garra completion bash > ~/.local/share/bash-completion/completions/garra
zsh:   garra completion zsh > ~/.zfunc/_garra    (with fpath+=~/.zfunc before compinit)
fish:  garra completion fish > ~/.config/fish/completions/garra.fish"""


def run(arguments: Sequence[str]) -> int:
    parser = parsing.parser("completion", "Print a completion script.", epilog=HOW)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")
    asked = parser.parse_args(list(arguments))
    output.say({"bash": bash, "zsh": zsh, "fish": fish}[asked.shell]())
    return 0


def commands() -> tuple[Command, ...]:
    """Every command, with those of the plugins that are on now."""
    more = (Command(one.name, output.harmless(one.summary), "") for one in brought.listed())
    return (*table.COMMANDS, *more)


def words() -> dict[str, list[str]]:
    """What may follow each command's name; the empty name is the beginning of the line."""
    following: dict[str, list[str]] = {"": ["--help", "--version", "--profile", "--state-dir"]}
    for row in commands():
        first, _, second = row.name.partition(" ")
        if second:
            following.setdefault(first, []).append(second)
        for name in (row.name, *row.aliases):
            if " " not in name:
                following[""].append(name)
            following.setdefault(name, []).extend([*row.words, "--help"])
    return following


def bash() -> str:
    cases = "\n".join(f'    "{name}") words="{" ".join(found)}" ;;' for name, found in words().items())
    return f"""\
_garra() {{
  local words name="" n word
  for ((n = 1; n < COMP_CWORD && n < 3; n++)); do
    word="${{COMP_WORDS[n]}}"
    [[ $word == -* ]] && break
    name="${{name:+$name }}$word"
  done
  case "$name" in
{cases}
    *) words="" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _garra garra"""


def zsh() -> str:
    cases = "\n".join(f"    {_quoted(name)}) found=({' '.join(found)}) ;;" for name, found in words().items())
    return f"""\
#compdef garra
_garra() {{
  local -a found typed
  typed=(${{words[2,CURRENT-1]:#-*}})
  case "${{(j: :)typed[1,2]}}" in
{cases}
    *) _files; return ;;
  esac
  compadd -- $found
}}
_garra "$@\""""


def fish() -> str:
    return "\n".join(["complete -c garra -f", *(line for row in commands() for line in _fish(row))])


def _fish(row: table.Command) -> list[str]:
    first, _, second = row.name.partition(" ")
    within = f"complete -c garra -n '__fish_seen_subcommand_from {first}'"
    if second:
        return [f"{within} -a {second} -d {_quoted(row.summary)}"]
    names = [f"complete -c garra -n __fish_use_subcommand -a {name}" for name in (first, *row.aliases)]
    options = [f"-l {word[2:]}" if word.startswith("--") else f"-a {word}" for word in row.words]
    return [*(f"{name} -d {_quoted(row.summary)}" for name in names), *(f"{within} {option}" for option in options)]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
