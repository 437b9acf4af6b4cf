"""Slack's interactive buttons: verification, replay protection, actions and replies."""
