"""Slack, by Socket Mode."""
