"""Three small services that use the client library, with injectable faults, for `make demo`.

Visitors send questions to core; core calls oracle for SQL and synapse for terms over HTTP, and
writes events to a stream that synapse consumes.
"""
