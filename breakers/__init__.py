"""Dependencies of services, the breakers that guard them, and how far all of it has degraded."""
