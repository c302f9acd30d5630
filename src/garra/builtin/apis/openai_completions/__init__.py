"""The chat-completions dialect, as hundreds of servers speak it."""
