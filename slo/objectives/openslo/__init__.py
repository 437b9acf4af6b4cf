"""OpenSLO v1: import and export of documents (https://github.com/OpenSLO/OpenSLO).

Fields without equivalent in Switchgear are refused, or left out with a remark.
"""
