"""The documentation: the site built from `docs/`, and the tests that run its commands."""
