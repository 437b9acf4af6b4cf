"""Pages of people: the list, one person, preferences and sessions."""
