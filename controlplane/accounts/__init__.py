"""People, roles, tokens and sessions: authentication and authorization."""
