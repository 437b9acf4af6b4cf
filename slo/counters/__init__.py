"""Store of cumulative counters by minute; counting a window takes two look-ups."""
