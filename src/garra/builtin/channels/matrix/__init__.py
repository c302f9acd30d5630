"""Matrix, over the client-server API."""
