"""Buttons pressed in Slack: signed, fresh, once, by somebody we know."""
