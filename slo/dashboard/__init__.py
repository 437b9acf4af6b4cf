"""Queries behind the SLO pages: the board, plots, and annotations."""
