"""Any program as a chat: signed calls in, signed calls out."""
