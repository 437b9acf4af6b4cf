"""Random faults from a seed against a whole installation, and a judge that compares every answer.

`plan` draws the faults, `faults` inflicts them, `writers` and `readers` use the installation
meanwhile, `truth` rebuilds from the audit trail what was published, and `judge` compares.
"""
