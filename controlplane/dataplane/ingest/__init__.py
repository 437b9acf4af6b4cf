"""Ingestion of instance reports: validation, merging, buffering and batched writes."""
