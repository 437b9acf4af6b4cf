"""`make demo`: three small services that use the client library, with injectable faults.

Visitors ask core; core asks oracle for SQL and synapse for terms, by HTTP, and writes events to a
stream that synapse reads. They use `switchgear` like any other service.
"""
