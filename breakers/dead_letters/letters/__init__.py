"""A dead letter itself: its fields, error, filters and presentation. Pure."""
