"""Values of dependencies and bulkheads that threshold rules compare with their limits."""
