"""Pictures and documents."""
