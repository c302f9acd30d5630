"""Pages of the web, and searching it."""
