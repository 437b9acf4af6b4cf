"""Removal and restore of letters: declared as intents in the database, then executed in Redis."""
