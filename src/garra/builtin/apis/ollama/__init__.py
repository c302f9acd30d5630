"""Ollama's own protocol."""
