"""The one way in: files that others made are read here, and nothing in them can hang, exhaust or run anything.

Everything wrong is a ValueError of one line (`Malformed`), which the readers of each kind of file turn into their own
error with the file's name. No other module parses YAML or JSON of files or opens arrays (`tests/test_intake.py`).
"""
