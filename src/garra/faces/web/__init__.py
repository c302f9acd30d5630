"""The page in a browser: its built files lie in `assets`, made from `web/`; the gateway serves them."""
