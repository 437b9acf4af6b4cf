"""The WebSocket server: one hub of open sockets per process, and the consumer of each socket."""
