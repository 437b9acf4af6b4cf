"""The command palette: searches pages, actions and objects by typed text.

Apps register their entries in modules named `palette_entries`.
"""
