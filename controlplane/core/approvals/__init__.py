"""Approvals: requests that require a second person, and break-glass reviews."""
