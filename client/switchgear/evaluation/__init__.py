"""May a call go on? What the snapshot says, in memory: no I/O, and nothing that waits."""
