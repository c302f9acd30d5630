"""The program, killed at named points along the whole way of a message, and what the platform's record shows then."""
