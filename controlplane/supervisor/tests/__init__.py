"""Tests of the supervised tree; its children are small stand-ins, its services are real."""
