"""The signed snapshot as a file, which clients read while no data plane responds."""
