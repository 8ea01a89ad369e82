"""The kinds of experiments: a folder for each family, whose `KINDS` maps the name of each kind to its class."""
