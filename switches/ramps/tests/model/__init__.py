"""Model-based test of ramps: drawn actions are applied to the product and to a model alike."""
