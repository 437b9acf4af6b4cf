"""Kill switches: episodes, expiry, rules, ramps, trips, drills, and the published snapshot."""
