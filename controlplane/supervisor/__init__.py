"""The supervised tree: embedded PostgreSQL and Redis, and the processes of an installation.

Nothing here imports Django: every Django process is a child process like the others.
"""
