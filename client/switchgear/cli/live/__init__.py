"""Live changes of the console, for `switchgear watch`."""
