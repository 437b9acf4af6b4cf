"""Each process of an installation by its command: for the supervised tree, and for containers."""
