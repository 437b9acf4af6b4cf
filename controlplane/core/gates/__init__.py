"""Gates: conditions that a ramp step must pass before the next one; also holds on ramps."""
