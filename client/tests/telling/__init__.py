"""What a client tells: the console, its callbacks, and its children."""
