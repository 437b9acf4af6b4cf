"""The palette: pages, actions and things, found by what somebody types.

Apps register theirs in modules named `palette_entries`.
"""
