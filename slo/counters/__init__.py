"""Store of cumulative counters by minute. Counting the events of a window takes two look-ups."""
