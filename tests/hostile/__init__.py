"""What attackers send, as data (`corpus/*.toml`, one file a way in), and what carries each to where it would arrive."""
