"""Recording of episode changes in the audit trail, messages and live pages."""
