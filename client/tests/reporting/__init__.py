"""Reports, acknowledgements, forks and process exit."""
