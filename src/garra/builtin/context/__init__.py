"""Context engines in the box."""
