"""Requests of other apps to trip or clear a switch; the app that owns switches decides on them."""
