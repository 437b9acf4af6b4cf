"""Communication with the console: snapshots and policies in, reports out."""
