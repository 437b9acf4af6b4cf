"""How a client learns what the console says, and how the console learns what it does."""
