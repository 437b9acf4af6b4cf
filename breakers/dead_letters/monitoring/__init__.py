"""Finding streams and what lies in them: looks every few seconds, an index, gaps, an alarm."""
