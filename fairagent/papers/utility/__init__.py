"""The utility experiment: does relevance reach the answer? Answers from k documents against one from none."""

KINDS = {"utility": "fairagent.evaluate.kinds.utility.kind:UtilityKind"}
