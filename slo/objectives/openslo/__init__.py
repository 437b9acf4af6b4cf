"""OpenSLO v1: documents in and out. What does not fit is refused or left out in words, never
guessed. (https://github.com/OpenSLO/OpenSLO, version openslo/v1.)"""
