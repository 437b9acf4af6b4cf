"""Answers to requests: bodies, validators, held polls, streams and OFREP."""
