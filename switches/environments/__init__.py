"""The state of this installation and of its siblings, such as staging beside production."""
