"""Long work that survives its workers: jobs, their steps, leases, checkpoints and side effects."""
