"""Delivery of the outbox: claims, attempts, rate limits, digests and results."""
