"""Instance reports: parsed, merged, buffered and written in batches."""
