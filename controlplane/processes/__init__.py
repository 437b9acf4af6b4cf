"""The processes of an installation, and commands that start them."""
