"""API tokens: hashed, scoped, owned by a person, expiring."""
