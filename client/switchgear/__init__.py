"""Switchgear's client library. What a service needs is in its parts: `switchgear.dlq`."""

__version__ = "0.1.0"
