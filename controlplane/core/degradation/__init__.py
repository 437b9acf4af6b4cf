"""How far the installation has degraded: from what is away to a level, and what works meanwhile."""
