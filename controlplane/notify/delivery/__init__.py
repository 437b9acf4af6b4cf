"""Delivery of the outbox: claims, attempts, pacing, digests, and what became of each message."""
