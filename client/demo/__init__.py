"""Three small services that use the client library, with injectable faults, for `make demo`.

Simulated visitors send questions to the service `core`. It calls `oracle` for SQL and `synapse` for
terms over HTTP, and writes events to a stream that `synapse` consumes.
"""
