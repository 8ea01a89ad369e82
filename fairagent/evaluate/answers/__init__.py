"""Fairness and usefulness of answers: what an answer is judged by, and how."""
