"""Favorites: objects, such as switches and SLOs, that a person has starred."""
