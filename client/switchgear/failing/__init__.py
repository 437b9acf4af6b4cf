"""The previous name of :mod:`switchgear.failures`, kept for imports of services."""
