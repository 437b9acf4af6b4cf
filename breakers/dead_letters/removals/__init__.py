"""Letters that leave through us or come back: first an intent, then Redis, then the record."""
