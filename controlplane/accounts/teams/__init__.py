"""Teams, what they own, and the decisions on who may do what."""
