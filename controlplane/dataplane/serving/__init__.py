"""Responses: bodies, validators, held polls, streams, and OFREP."""
