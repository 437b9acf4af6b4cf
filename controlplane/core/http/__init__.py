"""How core speaks HTTP: credentials, request ids, problem+json, pages of results."""
