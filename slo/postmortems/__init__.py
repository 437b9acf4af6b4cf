"""Postmortem drafts, and the timelines they are built from."""
