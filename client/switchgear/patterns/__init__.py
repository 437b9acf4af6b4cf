"""Patterns that keep a service responsive while its dependencies fail.

Each is a decorator and a context manager, and works alone or combined with others.
"""
