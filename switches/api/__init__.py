"""REST API of switches."""
