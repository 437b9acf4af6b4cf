"""Loads a folder of YAML files: each app reads its own, and all load or none."""
