"""Slack's interactive buttons: signature check, replay protection, action and reply."""
