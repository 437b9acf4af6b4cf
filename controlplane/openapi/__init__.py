"""The OpenAPI document of the HTTP API: its generation, its completion and its views."""
