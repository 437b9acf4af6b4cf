"""A conformance suite for servers of the OpenFeature Remote Evaluation Protocol (OFREP) 0.3."""

__version__ = "0.1.0"
