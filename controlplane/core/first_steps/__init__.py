"""First steps of a new installation: a guide of four steps, each ticked by evidence."""
