"""The append-only, hash-chained record of everything anybody did."""
