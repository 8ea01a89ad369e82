"""Experiments: systems compared on topics, as a file describes it."""
