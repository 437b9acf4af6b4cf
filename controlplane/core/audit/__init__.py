"""Append-only, hash-chained audit trail."""
