"""OpenAI's responses, at OpenAI, at Azure and at servers that speak the same."""
