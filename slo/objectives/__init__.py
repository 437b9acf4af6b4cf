"""Objectives: SLO documents, from people, files and OpenSLO, and exclusions."""
