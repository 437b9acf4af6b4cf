"""How events get in: pushed, reported, asked of Prometheus, imported."""
