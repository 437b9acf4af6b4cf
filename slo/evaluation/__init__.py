"""Evaluation of SLOs: the tick of each minute, statuses, budgets, and ramp gates."""
