"""Readings of dependencies and bulkheads that threshold rules compare with limits."""
