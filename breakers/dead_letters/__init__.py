"""Dead letters: streams on Redis servers, their index, and what is done with them."""
