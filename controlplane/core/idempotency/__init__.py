"""Idempotency keys: a repeated request gets the first answer again and has no second effect."""
