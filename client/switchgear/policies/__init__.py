"""All patterns of one dependency, by what the console says."""
