"""Safety rules across switches: what may not be stopped, or let run again, at the same time."""
