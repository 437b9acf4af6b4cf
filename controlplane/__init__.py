"""The wiring of Switchgear: settings, entry points and the supervised processes."""
