"""Live updates over WebSockets: notifications between processes, and one hub per process."""
