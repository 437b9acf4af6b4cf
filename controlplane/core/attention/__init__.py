"""The page *Needs attention*: everything that waits for a person, most severe first."""
