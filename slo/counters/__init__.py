"""The store of cumulative counters: one row a minute, any window by two look-ups."""
