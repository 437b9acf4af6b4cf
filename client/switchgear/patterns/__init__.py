"""What keeps a service going while what it calls fails.

Each is a decorator and a context manager, and works alone or with others.
"""
