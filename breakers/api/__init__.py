"""The registry and the board over HTTP."""
