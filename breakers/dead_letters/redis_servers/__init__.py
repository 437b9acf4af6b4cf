"""The Redis servers, asked in bounded steps, by scripts that are safe to repeat."""
