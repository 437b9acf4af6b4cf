"""Emergency codes of people, for the emergency page of a data plane."""
