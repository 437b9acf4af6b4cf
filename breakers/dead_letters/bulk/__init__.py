"""Bulk jobs: retry, discard or purge all letters that match a filter."""
