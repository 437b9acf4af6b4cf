"""Transports: one package for each kind of destination.

A package has a module `transport` that registers everything the product needs to know about the
kind. An optional module `environment` lists the kind's `VARIABLES` and reads them into settings.
"""
