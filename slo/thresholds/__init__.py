"""Rules that compare a figure with a limit, of whatever the house measures."""
