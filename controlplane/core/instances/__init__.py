"""The running processes of services: what each says it applies, and what it checks."""
