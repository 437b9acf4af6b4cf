"""Transactional outbox: messages written with the change they report, and delivered afterwards."""
