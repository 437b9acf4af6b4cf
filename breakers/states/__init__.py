"""How breakers stand and stood: by instance, by dependency, by minute."""
