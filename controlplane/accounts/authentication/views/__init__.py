"""The pages of entry."""
