"""Gates, the conditions for the next step of a ramp, and holds, which stop ramps at a step."""
