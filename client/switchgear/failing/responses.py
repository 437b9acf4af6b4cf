"""The previous name of :mod:`switchgear.failures.responses`."""

from switchgear.failures.responses import FailureResponse as Response
from switchgear.failures.responses import respond

__all__ = ["Response", "respond"]
