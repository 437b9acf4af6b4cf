"""SLOs: counters of events, burn rates, error budgets, alerts, and the alerts' actions."""
