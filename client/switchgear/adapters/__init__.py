"""What other libraries need to work with this one. Each imports its library only when asked for."""
