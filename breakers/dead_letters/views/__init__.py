"""The screens of dead letters: the inbox, one stream, one letter, bulk jobs."""
