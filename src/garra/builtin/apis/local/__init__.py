"""A model on this machine, in a child process: its crash or a long prompt never touches the gateway."""
