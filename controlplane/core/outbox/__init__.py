"""Transactional outbox: messages stored with a change and delivered afterwards."""
