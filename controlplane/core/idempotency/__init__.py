"""Idempotency keys: a repeated request gets the first response and has no second effect."""
