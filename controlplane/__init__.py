"""The Django project of Switchgear: settings, entry points and supervised processes."""

__version__ = "0.1.0"
"""The version in `pyproject.toml`."""
