"""The previous name of :mod:`switchgear.failures.responses`."""

from switchgear.failures.responses import Response, respond

__all__ = ["Response", "respond"]
