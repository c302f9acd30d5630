"""What the agent remembers, told with the turn it is of use to."""
