"""`make demo`: three small services that use the client library, with faults to watch.

Visitors ask core; core asks oracle for SQL and synapse for terms, by HTTP, and writes events to a
stream that synapse reads. They know of the console what any service knows: `switchgear` alone.
"""
