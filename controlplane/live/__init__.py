"""The WebSocket server: one hub per process, its sockets and their consumer."""
