"""Pages of dead letters: the inbox, a stream, a letter, bulk jobs."""
