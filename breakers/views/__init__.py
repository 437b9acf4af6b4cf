"""Pages of breakers: the board, one dependency, the map, fallbacks and infrastructure."""
