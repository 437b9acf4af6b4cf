"""Exact arithmetic of SLOs. Pure: values in and out, no ORM, no clock, no settings."""
