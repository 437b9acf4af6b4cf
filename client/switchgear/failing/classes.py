"""The former name of :mod:`switchgear.failures.classification`; services may still import it."""

from switchgear.failures.classification import Catastrophic, FailureClass, classify, register

__all__ = ["Catastrophic", "FailureClass", "classify", "register"]
