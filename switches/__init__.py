"""Kill switches: episodes, expiry, publication, and what services are told."""
