"""Calls to language models: a chain of providers, prompts that fit a token limit, token budgets."""

from switchgear.llm.spend_budget import Reservation, SpendBudget
from switchgear.llm.spend_ledger import SpendExceeded
from switchgear.patterns.parameters import SpendParameters

__all__ = ["Reservation", "SpendBudget", "SpendExceeded", "SpendParameters"]
