"""*Needs attention*: one page of everything that waits for a person, the worst first."""
