"""Pages of switches: the switchboard, one switch, and actions."""
