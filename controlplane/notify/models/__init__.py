"""Models of notify, which keep core's app label and table names."""

from .interactions import AnsweredRequest
from .targets import EscalationStep, OnCallMember, Route, Target
from .teams import TeamContact

__all__ = ["AnsweredRequest", "EscalationStep", "OnCallMember", "Route", "Target", "TeamContact"]
