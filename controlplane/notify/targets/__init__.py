"""Who is told of what: people, channels, on-call rotations, escalations, and routes to them."""
