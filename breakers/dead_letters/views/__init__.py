"""Pages of dead letters: the inbox, a stream, a letter and bulk jobs."""
