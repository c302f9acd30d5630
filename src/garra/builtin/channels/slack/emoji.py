"""Emojis by Slack's names: the ones a bot shows, and those people answer with most."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "👀": "eyes",
    "🤔": "thinking_face",
    "✍": "writing_hand",
    "👍": "+1",
    "👎": "-1",
    "😱": "scream",
    "✅": "white_check_mark",
    "❌": "x",
    "🔥": "fire",
    "🎉": "tada",
    "❤": "heart",
    "😂": "joy",
    "🙏": "pray",
    "👏": "clap",
    "🚀": "rocket",
    "⏳": "hourglass_flowing_sand",
    "⌛": "hourglass",
    "⚠": "warning",
    "💯": "100",
    "😀": "grinning",
    "😄": "smile",
    "😅": "sweat_smile",
    "😢": "cry",
    "😮": "open_mouth",
    "😡": "rage",
    "🙌": "raised_hands",
    "👌": "ok_hand",
    "🤝": "handshake",
    "💡": "bulb",
    "📌": "pushpin",
    "🤖": "robot_face",
    "👋": "wave",
    "⭐": "star",
    "❓": "question",
    "❗": "exclamation",
    "🛑": "octagonal_sign",
    "🔄": "arrows_counterclockwise",
    "⚡": "zap",
    "🌐": "globe_with_meridians",
    "🧠": "brain",
    "🛠": "hammer_and_wrench",
    "💬": "speech_balloon",
    "🥱": "yawning_face",
}
_SHOWN = {name: emoji for emoji, name in NAMES.items()} | {"thumbsup": "👍", "thumbsdown": "👎"}


def named(emoji: str) -> str:
    """Slack's name of an emoji; what is none of these is taken for a name already."""
    bare = emoji.replace("\ufe0f", "").strip().strip(":")
    return NAMES.get(bare, bare)


def shown(name: str) -> str:
    """The emoji of a name; a workspace's own stays a name between colons."""
    return _SHOWN.get(name.partition("::")[0], f":{name}:")
