"""IRC, over one connection of its own."""
