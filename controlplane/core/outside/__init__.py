"""Calls to servers whose addresses people gave: where they may lead, and how they get there."""
