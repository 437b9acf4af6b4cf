"""Live updates: topics, their subscribers, and change notices between processes."""
