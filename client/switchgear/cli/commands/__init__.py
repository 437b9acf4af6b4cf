"""What can be asked for: the commands, by what they are about."""
