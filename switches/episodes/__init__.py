"""Episodes as they are written: state in audit and messages, and what is live with one."""
