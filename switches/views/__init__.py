"""The screens of switches: the board, one switch, engaging, and everything that changes one."""
