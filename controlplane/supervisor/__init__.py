"""The supervised tree: embedded PostgreSQL and Redis, and the processes of one installation.

Nothing in here imports Django: every Django process is a child, started and ended like the rest.
"""
