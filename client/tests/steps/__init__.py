"""Tests of durable jobs."""
