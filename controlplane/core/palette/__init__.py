"""Where one types what one wants: pages, actions and things, found by their words.

Each app says what it has in a module named `palette`; nobody is asked by name.
"""
