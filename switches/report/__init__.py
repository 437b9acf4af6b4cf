"""The weekly report: what stood at the end of the week, told, signed off and kept."""
