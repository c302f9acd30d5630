"""Matrix: events recorded from a real Synapse, the channel over a homeserver of one bot, its keys."""
