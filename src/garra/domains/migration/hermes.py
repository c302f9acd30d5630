"""What a Hermes home (`$HERMES_HOME`, `~/.hermes`) holds. Blocks.

config.yaml {model, providers, mcp_servers}, SOUL.md, AGENTS.md, memories/{MEMORY,USER}.md, skills/**/SKILL.md, .env
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from garra.core.errors import UserError
from garra.core.migration import File, Found, Item, Words
from garra.domains.migration import files, notes

NAME: Final = "hermes"
FAMILIES: Final = {
    "chat_completions": "openai-completions",
    "openai": "openai-completions",
    "responses": "openai-responses",
    "codex_responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "anthropic_messages": "anthropic-messages",
}
KEYS: Final = {
    "OPENAI_API_KEY": "openai", "ANTHROPIC_API_KEY": "anthropic", "OPENROUTER_API_KEY": "openrouter",
    "GOOGLE_API_KEY": "google", "GEMINI_API_KEY": "google", "GROQ_API_KEY": "groq", "MISTRAL_API_KEY": "mistral",
    "DEEPSEEK_API_KEY": "deepseek", "XAI_API_KEY": "xai",
}  # fmt: skip
LEFT: Final = ("sessions", "cron", "plugins", "pairing", "state.db", "mcp-tokens")


def found(source: Path) -> Found:
    """Everything there is. Raises UserError where `source` is no such folder."""
    config = source / "config.yaml"
    if not config.is_file() and not (source / "SOUL.md").is_file():
        raise UserError(f"{source} is no Hermes home: it has no config.yaml and no SOUL.md; say --from DIR")
    items = [*_config(notes.yaml(files.text(config))), *_keys(files.text(source / ".env")), *_words(source)]
    items += notes.skills(source / "skills")
    items += [
        Item(f"manual:{name}", "manual", f"{name} of Hermes", note="stays where it is; look at it by hand")
        for name in LEFT
        if (source / name).exists()
    ]
    return Found(NAME, str(source), tuple(items))


def _config(plain: Any) -> Iterator[Item]:
    if not isinstance(plain, Mapping):
        return
    merged: dict[str, Any] = {}
    providers = {str(name): _provider(row) for name, row in notes.mapping(plain.get("providers")).items()}
    model = notes.mapping(plain.get("model"))
    named, chosen = str(model.get("provider") or ""), str(model.get("default") or model.get("model") or "")
    if named and model.get("base_url"):
        providers.setdefault(named, {}).update(_provider(model))
    if providers := {name: row for name, row in providers.items() if row.get("baseUrl")}:
        merged["models"] = {"providers": providers}
    if named and chosen:
        merged["agents"] = {"defaults": {"model": {"primary": f"{named}/{chosen}"}}}
    if merged:
        yield Item("config", "config", "models and providers (config.yaml)", merged)
    if plain.get("mcp_servers"):
        yield Item("manual:mcp", "manual", "MCP servers of Hermes", note="add them under mcp.servers when you use them")


def _provider(row: Any) -> dict[str, Any]:
    """A provider's row as ours; its key stays a variable's name."""
    row = notes.mapping(row)
    ours: dict[str, Any] = {}
    if row.get("base_url"):
        ours |= {"baseUrl": str(row["base_url"]), "api": FAMILIES.get(str(row.get("api_mode")), "openai-completions")}
    if re.fullmatch(r"[A-Z][A-Z0-9_]*", str(row.get("key_env", ""))):
        ours["apiKey"] = f"${{{row['key_env']}}}"
    name = row.get("default_model") or row.get("default")
    if name and ours:
        ours["models"] = [{"id": str(name), "name": str(name)}]
    return ours


def _keys(text: str) -> Iterator[Item]:
    pairs = re.findall(r"^(?:export\s+)?([A-Z][A-Z0-9_]*)\s*=\s*[\"']?([^\"'\n#]+)", text, re.M)
    known = {KEYS[name]: value.strip() for name, value in pairs if name in KEYS and value.strip()}
    if known:
        label = f"keys of .env: {', '.join(sorted(known))}"
        yield Item("auth:main", "auth", label, notes.profiles(known), secret=True)


def _words(source: Path) -> Iterator[Item]:
    for name in ("SOUL.md", "AGENTS.md"):
        if files.text(source / name).strip():
            yield Item(f"workspace:{name}", "workspace", name, (File(str(source / name), name),))
    for name in ("MEMORY.md", "USER.md"):
        if words := files.text(source / "memories" / name).strip():
            yield Item(f"memory:{name}", "memory", f"memories/{name}", (Words(name, words, behind=True),))
