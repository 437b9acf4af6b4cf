"""Opsgenie, through its Alert API."""
