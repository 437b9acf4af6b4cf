"""Transports: one package for each kind of destination.

The module `transport` of a package registers a `Transport` object. The optional module
`environment` lists the environment variables of the kind as `VARIABLES`, and reads them.
"""
