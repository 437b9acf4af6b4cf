"""Delivery of outbox messages: claims, attempts, rate limits, digests and outcomes."""
