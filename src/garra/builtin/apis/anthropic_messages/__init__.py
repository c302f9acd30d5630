"""Anthropic's messages, through its official library; loaded with the first call."""
