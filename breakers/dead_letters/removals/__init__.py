"""Removals and restores of letters: declared as intents, executed in Redis, then settled."""
