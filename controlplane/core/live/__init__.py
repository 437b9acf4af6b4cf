"""Live updates for open sockets: notifications between processes, and a hub in each process."""
