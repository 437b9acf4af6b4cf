"""Replies to whoever pressed a button in Slack."""
