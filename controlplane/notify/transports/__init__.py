"""Transports: one folder for each kind of destination a message can be sent to.

A folder has a module `transport` that registers everything the product needs to know about the
kind. If it has a module `environment` as well, that names the kind's `VARIABLES` and reads them
into settings.
"""
