"""Tests of long work in steps."""
