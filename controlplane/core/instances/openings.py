"""The condition for breaker openings that count as trips: not forced by an operator."""

BY_OPERATORS = "override "
"""How the cause begins of a change that follows from an override, or from its end."""
TRIPPED = f"(to_state = 'open' AND cause NOT LIKE '{BY_OPERATORS}%%')"
"""In SQL with parameters, of a row of `breakers_transition`."""
