"""The shared base of every app: audit, outbox, approvals, jobs, errors and ticks."""
