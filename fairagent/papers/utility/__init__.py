"""The utility experiment: does relevance reach the answer? Answers from k documents against one from none."""
