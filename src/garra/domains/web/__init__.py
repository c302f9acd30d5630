"""What tools reach of the web, by the owner's settings."""
