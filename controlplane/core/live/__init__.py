"""What changes, told to open sockets as it happens: notes between processes, and a hub in each."""
