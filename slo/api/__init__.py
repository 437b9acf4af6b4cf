"""SLOs over HTTP."""
