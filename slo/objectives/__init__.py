"""Objectives: SLO documents and exclusions, written by people, files and OpenSLO."""
