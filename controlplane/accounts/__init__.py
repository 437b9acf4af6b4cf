"""Accounts: people, roles, API tokens, sessions, authentication."""
