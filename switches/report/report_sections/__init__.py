"""The switches' sections of the weekly report."""
