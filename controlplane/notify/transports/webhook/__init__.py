"""Webhooks: signed JSON to the URL of a target."""
