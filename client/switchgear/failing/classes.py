"""The previous name of :mod:`switchgear.failures.classification`."""

from switchgear.failures.classification import Catastrophic, FailureClass, classify, register

__all__ = ["Catastrophic", "FailureClass", "classify", "register"]
