"""Requests that need a second person, and the decision of that person."""
