"""Every way to change what is registered and what is forced upon breakers."""
