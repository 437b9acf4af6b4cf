"""Replies to people who pressed a button in Slack."""
