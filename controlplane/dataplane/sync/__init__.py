"""Tasks that keep the process's state equal to the database, and its copy on disk."""
