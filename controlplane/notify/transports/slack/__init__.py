"""Slack, by bot token or incoming webhook."""
