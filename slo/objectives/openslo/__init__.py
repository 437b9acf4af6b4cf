"""OpenSLO v1: import and export of documents (https://github.com/OpenSLO/OpenSLO).

Fields that can't be represented are refused, or left out with a remark, never guessed.
"""
