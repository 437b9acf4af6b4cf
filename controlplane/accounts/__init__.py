"""People, roles, tokens and sessions: who may come in, and what they may do."""
