"""Dead letters: found, understood, fixed and replayed, and none of them lost on the way."""
