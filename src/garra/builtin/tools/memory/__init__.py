"""Looking into what the agent remembers."""
