"""What happens on the console, as it happens: `switchgear watch`."""
