"""Measurements of gateways against a model that costs nothing. `sh bench/run.sh` runs them; README.md explains them."""
