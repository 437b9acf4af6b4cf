"""Trips: requests by machines to engage a switch, decided by policies or left to people."""
