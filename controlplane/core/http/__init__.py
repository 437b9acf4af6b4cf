"""HTTP layer: request properties, views, JSON, errors, pagination, OpenAPI."""
