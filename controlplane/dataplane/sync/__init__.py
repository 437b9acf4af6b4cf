"""Background tasks that keep the state in memory, and its copy on disk, up to date."""
