"""Fixtures of the client library's tests."""

from tests.dlq.streams import stream

__all__ = ["stream"]
