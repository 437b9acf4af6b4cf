"""Loading a folder of YAML files: the apps read what is theirs, and all of it is loaded or none."""
