"""What an agent remembers: an index over its files and its conversations, made from them and never the truth."""
