"""States of breakers, present and past: by instance, by dependency, by minute."""
