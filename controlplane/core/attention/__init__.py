"""Everything that waits for a person, on one page: what each app registered, the worst first."""
