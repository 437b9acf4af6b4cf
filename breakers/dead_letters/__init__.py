"""Dead letters: failed messages in Redis streams, their index, removal and archive."""
