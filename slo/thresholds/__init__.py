"""Threshold rules: any registered metric compared with a limit."""
