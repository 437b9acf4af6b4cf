"""Reports of instances: parsed, merged, buffered and written in batches."""
