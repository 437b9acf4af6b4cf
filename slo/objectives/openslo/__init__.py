"""OpenSLO v1: import and export of documents.

Whatever does not fit is refused, or left out with a remark, never guessed.
(https://github.com/OpenSLO/OpenSLO, version openslo/v1.)
"""
