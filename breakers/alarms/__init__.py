"""Alarms: limits that what is reported of dependencies and bulkheads has to keep."""
