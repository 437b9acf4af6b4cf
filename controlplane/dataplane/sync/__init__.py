"""Tasks that keep the state of a process equal to the database, and its copy on disk."""
