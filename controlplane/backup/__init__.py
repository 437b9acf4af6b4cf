"""Backups in one file: creation, verification and restore."""
