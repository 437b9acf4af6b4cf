"""Figures of what is reported of dependencies and bulkheads, for rules to compare with limits."""
