"""Transports: one folder for each kind of destination a message can be sent to.

A folder is listed in `KINDS` and has `transport.py`, whose `TRANSPORT` is everything the product
needs to know about the kind. If it has `environment.py` as well, that declares the kind's
`VARIABLES` and reads them into settings; it is imported before Django is configured.
"""

KINDS = ("slack", "email", "webhook", "slack_reply")
"""The folders, in the order in which people and choices list them."""
