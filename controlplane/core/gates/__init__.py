"""Gates: conditions that a step must pass before the next. Kinds, questions, verdicts, holds."""
