"""What is wanted: SLOs and their exclusions, written by people, files and OpenSLO."""
