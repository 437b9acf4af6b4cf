"""SLOs: what is counted, how fast budgets burn, and what follows."""
