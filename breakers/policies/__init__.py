"""Policies of dependencies: parameters, validation, differences and configuration files."""
