"""Backtests: burn-rate rules evaluated against stored history."""
