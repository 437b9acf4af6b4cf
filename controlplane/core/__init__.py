"""What every app stands on: people, tokens, audit, outbox, approvals, errors, ticks."""
