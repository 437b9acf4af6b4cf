"""Configuration folders of YAML files: each app loads its own files, in one transaction."""
