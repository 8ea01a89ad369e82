"""Judging rankings: which topics count, one topic's values, and their mean."""
