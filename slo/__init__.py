"""SLOs: counters of events, burn rates and error budgets, alerts and what they trigger."""
