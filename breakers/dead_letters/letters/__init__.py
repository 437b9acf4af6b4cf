"""A dead letter itself: what it is, why it failed, what may be seen of it. Pure."""
