"""The API of switches: list, detail, actions and publication."""
