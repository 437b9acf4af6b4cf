"""The former name of :mod:`switchgear.failures.responses`; services may still import it."""

from switchgear.failures.responses import FailureResponse as Response
from switchgear.failures.responses import respond

__all__ = ["Response", "respond"]
