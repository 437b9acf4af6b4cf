"""Trips: machines that stop what they are allowed to stop, and leave the rest to people."""
