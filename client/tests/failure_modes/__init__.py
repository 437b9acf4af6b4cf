"""Known failure modes of each pattern: shown without this library, and absent with it."""
