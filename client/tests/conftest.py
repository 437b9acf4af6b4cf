"""What the tests of the client library share."""

from tests.streams import stream

__all__ = ["stream"]
