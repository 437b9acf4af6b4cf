"""All patterns of one dependency, as configured by the console and the code."""
