"""The processes of an installation and their commands, for the supervisor and for containers."""
