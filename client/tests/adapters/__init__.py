"""Tests of the adapters to other libraries."""
