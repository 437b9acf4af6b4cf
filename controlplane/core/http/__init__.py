"""The HTTP layer: credentials, request ids, problem+json, pagination."""
