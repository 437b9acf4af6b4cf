"""Pages of people: preferences, sessions, and administration."""
