"""The supervised tree: embedded PostgreSQL and Redis, and the processes of an installation.

This package doesn't import Django: processes with Django are children, like the others.
"""
