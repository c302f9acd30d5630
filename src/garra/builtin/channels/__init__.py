"""Chat channels in the box."""
