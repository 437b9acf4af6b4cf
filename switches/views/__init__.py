"""Pages of switches: the board, one switch, and the actions on it."""
