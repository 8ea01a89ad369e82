"""Experiments: systems compared on topics, as a file describes them.

`reading` and `check` turn the file into a plan and report all errors at once; `experiment` runs what is missing, in
threads, processes or on a cluster (`workers`), and appends each outcome to a journal (`run`). Tables, statistics and
the page are made from the journal alone, so a killed run continues to the same bytes. A kind of experiment is a
subclass of `ExperimentKind` (`kind`); `ranking` is the one for rankings.
"""
