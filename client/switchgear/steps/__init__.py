"""Long work in steps: each is done once, and a crash goes on where it was."""
