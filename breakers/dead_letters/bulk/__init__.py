"""Many letters at once, by durable jobs."""
