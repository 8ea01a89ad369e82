"""Systems rank documents, and the rankings are judged."""

KINDS = {"ranking": "fairagent.evaluate.kinds.ranking.kind:RankingKind"}
