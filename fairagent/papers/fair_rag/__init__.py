"""The Fair RAG experiment: rankings drawn at random, what exposure items may expect, and what answers gain by it."""

KINDS = {
    "fair-rag": "fairagent.evaluate.kinds.fair_rag.kind:FairRagKind",
    "lamp": "fairagent.evaluate.kinds.fair_rag.lamp:LampKind",
}
