"""What apps of ours ask machines to stop; the app that owns switches decides and answers."""
