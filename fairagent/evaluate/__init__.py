"""Experiments: systems compared on topics, as a file describes them.

`plan` and `check` read the file and report all errors at once; `experiment` runs what is missing, in threads, processes
or on a cluster (`workers`), and appends each outcome to a journal. `run` reads that once into `Results`, of which all
tables, verdicts and pages are made, so that a killed run continues to the same bytes.
"""
