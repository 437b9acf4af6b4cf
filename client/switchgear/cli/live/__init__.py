"""Live changes of the console: `switchgear watch`."""
