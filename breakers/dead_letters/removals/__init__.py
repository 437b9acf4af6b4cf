"""Removal and restore of letters: declared as intents, executed in Redis, then settled."""
