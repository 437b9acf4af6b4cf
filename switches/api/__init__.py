"""Switches over HTTP: finding them, acting on them, and what is published of them."""
