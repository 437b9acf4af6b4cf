"""The command `switchgear`, against real consoles and lying ones."""
