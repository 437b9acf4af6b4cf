"""What a step has to pass before the next: questions, and verdicts with their evidence."""
