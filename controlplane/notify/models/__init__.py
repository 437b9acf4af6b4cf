"""The tables of notify, gathered for Django; they keep core's label and names."""

from .interactions import AnsweredRequest
from .targets import EscalationStep, OnCallMember, Route, Target

__all__ = ["AnsweredRequest", "EscalationStep", "OnCallMember", "Route", "Target"]
