"""Relays: data planes that follow another one, without a database, Redis or the secret key."""
