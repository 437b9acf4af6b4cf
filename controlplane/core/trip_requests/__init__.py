"""Requests of other apps to trip a switch, or to end its cause; the switches app decides them."""
