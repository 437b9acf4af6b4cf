"""The condition for breaker openings that count as trips: not forced by an operator."""

BY_OPERATORS = "override "
"""Prefix of the cause of a change made by an override, or by its end."""
TRIPPED = f"(to_state = 'open' AND cause NOT LIKE '{BY_OPERATORS}%%')"
"""SQL condition on a row of breaker transitions, for queries with parameters (hence `%%`)."""
