"""Store of cumulative counters: a row for each minute, so that any window takes two look-ups."""
