"""The public interface for parts, measures and kinds of experiments of your own; the shipped add-ons use nothing else.

Write a class with the method of a protocol, and a `Part` (a section of the settings with a `kind`) whose `build` makes
it; an entry point lets settings name it. docs/extending.md has a re-ranker, a refiner, an engine, a measure and a kind
of experiment. A name is fetched from its module when it is first used: importing this loads nothing. A package that
needs names of a later version than the oldest says so (`EXTEND_VERSION`), and is refused by an older fairagent.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

HOMES = {
    "types": """
        Answer AnswerResult Attribution Debiased Dial Document Exposure Filtered FloatArray Group Hit Query Ranking
        Refinement SearchResult Step Term Topic Usage Verdict exposure_rows
    """,
    "types.clean": "LONGEST_QUERY label_text logger name_of printable query_shown visible",
    "types.common": "Check counted",
    "errors": """
        BackendUnavailable BudgetExceeded DataError FairAgentError FatalModelError Fault IndexMismatch ModelError
        NotRegular PartError PromptError ReplyError ReplyInvalid ReplyTruncated SettingsError TransientModelError
        UsageError
    """,
    "storage.cancellation": "Cancellation cancelled_by check_cancelled sleep",
    "storage.arrays": "read_array write_array",
    "storage.digests": "sealed unsealed",
    "storage.files": """
        LOCK explained file_name force is_worked_in locked remove_folder whole_file write_whole
    """,
    "storage.folders": "expect_replaceable workshop",
    "storage.lines": "LineFile whole_lines",
    "storage.log_lines": "FIELDS about_request",
    "storage.packages": """
        expect_installed installed load longest_input pick_device read_config without_progress
    """,
    "storage.readers": "Malformed as_text file_bytes file_text parse_json",
    "storage.regular": "new_file open_private open_to_read open_to_write",
    "storage.processes": "Crew cores",
    "storage.threads": "Memo one_blas_thread one_torch_thread progress",
    "storage.yaml_text": "LARGEST_YAML compose_yaml",
    "settings": """
        BudgetSettings ModelSettings Part SearchOptions Section SelfDebiasSettings Settings
        Unknown load_settings read_yaml validate
    """,
    "settings.described": "flow",
    "settings.parts": "Progress read_part",
    "settings.plugins": "EXTEND_VERSION load_plugins",
    "settings.faults": "fault_lines no_such",
    "settings.section": "meanings",
    "measures": """
        AWRF DIVERGENCES Discount JudgedRanking LOG2_MAX2 Log2Plus1 Measure NDCG Product Uniform expected_exposure
        group_exposure item_exposure jensen_shannon known_part min_max missing_judgments
        most_underexposed normalized_expected_utility parse_discount
    """,
    "measures.answers": """
        Normalization StringUtility attributed_exposure expected_attribution_rate normalized_attributed_disparity
        parse_utility
    """,
    "measures.base": "seeded",
    "measures.curves": """
        DisparityInterval EDGES Line area_under_curve disparity_intervals fitted_line interval_name
    """,
    "measures.ndcg": "Gain graded_ndcg",
    "measures.parse": "MeasureFamily label_of",
    "llm": "Message Model ModelReply ModelRequest Reply ask",
    "llm.asking": "unless_failing valid_reply",
    "llm.budget": "Budget charged ledger limited_by",
    "llm.cache": "ReplyCache",
    "llm.likelihood": "EndpointModel Likelihood LocalModel MaskedLikelihood check_texts open_local perplexity",
    "llm.models": "Models",
    "llm.prompts": "Prompts check_prompts folder_of shipped_folder source_relative_to variants",
    "llm.prompts.calls": "Calls Case LETTER",
    "llm.prompts.specimens": "SPECIMENS meaning",
    "llm.prompts.template": "LARGEST_TEMPLATE",
    "llm.reply": "one_for_each one_of schema_of",
    "llm.request": "estimate_tokens",
    "collection": "Collection GroupTable Groups TopicGroups load_collection make_target",
    "collection.bounds": "Bounds bounded",
    "collection.exposure": "ExposureMeter dimensions_of total_gap",
    "collection.groups": "JoinedGroups tables_of",
    "collection.known": "KnownIds compare_ids notes_of_groups warn_once",
    "collection.leakage": "refuse_overlap text_key",
    "collection.load": "aligned",
    "collection.target_choice": "judged_by",
    "collection.targets": "TARGET",
    "collection.records": "Faults Record checked_id csv_records json_records lines listed read_text shown",
    "collection.spellings": "meant",
    "collection.table_buffer": "Labels",
    "retrieve.ann": "AnnManifest DEPTH",
    "retrieve.base": """
        MAX_TERMS PassageSource Retriever TextSource Vocabulary as_query check_length engine_time full_text ignore
        lend_texts placed scored searched term_weights texts_for
    """,
    "retrieve.bm25.analysis": "STOP_WORDS WORD open_analyzer plain_words",
    "retrieve.bm25.part": "check_index earlier_of index_sibling open_index prepare_index",
    "retrieve.catalog": "IdTable mapped ranked",
    "retrieve.dense": "DenseRetriever",
    "retrieve.encoded": "EncodedBuild EncodedManifest PROBE_TEXT Work floats",
    "retrieve.encoders": "BUNDLED Embeddings Encoder EncoderPart of_length_one open_encoder open_sentence_model",
    "retrieve.graph": "engine_encoders graph_of prepare_graphs",
    "retrieve.known": "indexed_documents",
    "retrieve.light.encoder": "word_table",
    "retrieve.manifest": "Indexable MANIFEST Manifest",
    "retrieve.passages": "PassageRetriever",
    "retrieve.relevance_model": "Postings TermSource",
    "retrieve.run_file": "RunFile by_grade drawn read_run",
    "retrieve.site": "Site",
    "retrieve.stochastic": "checked_alpha sample_rankings sampler_log_scores topic_rng",
    "retrieve.vectors": "check_vectors encoder open_vectors prepare_vectors",
    "answer.answering": "Answerer Contexts debias_with",
    "answer.attribution": "Attributor attribute_with no_attribution statement",
    "answer.citations": "OnText without_citations",
    "answer.citing": "CitedSoFar OnCited",
    "answer.context": "Order arrange fit numbered shortened",
    "answer.filtering": """
        Filter LONGEST_TITLE Page Verdicts as_data ask_verdicts batches call_ids check_ids filter_with page_of
        reason_text
    """,
    "answer.generators": "ExtractiveGenerator Generator answer_with",
    "answer.removals": "filter_alarms",
    "search.agent": "FairAgent",
    "search.hit_shapes": "at_path",
    "search.hits": """
        FairHits HitGroups Shares are_shares exposures_of fair_rerank fields_of groups_alone
    """,
    "search.loop.base": "Loop LoopResult Search ignore_step",
    "search.loop.fair_qr": "FairQR",
    "search.pipeline": """
        asks_model build build_answerer build_contexts check_groups engine_alone open_agent open_live open_site
         resolve with_settings
    """,
    "search.refine.asking": "AskingConfig AskingRefiner template_variables",
    "search.refine.feedback": "RefineState Refiner",
    "search.refine.llm": "GroundedConfig LlmConfig REFINERS refining_part",
    "search.rerank.frontier": "Frontier",
    "search.rerank.base": "PairScorer Pool Reranker ordered pair_scorer pair_scores pool_of reranked",
    "search.run": "SearchRun hits_of",
    "evaluate.comparison": "SIGNIFICANT paired_t",
    "evaluate.experiment": "build_indexes",
    "evaluate.fields": "FileSection Name",
    "evaluate.fingerprint": "changes file_hash of_model price_of",
    "evaluate.judging": "Judge JudgedBy JudgedKind judged_value",
    "evaluate.kind": """
        Checking Chosen ExperimentKind JsonObject MeasureInfo Opened Subject Systems choose_topics
    """,
    "evaluate.outcome": "AnswerRecord HitRecord Outcome",
    "evaluate.query_groups": "cloud query_group_files query_group_tables",
    "evaluate.questions": """
        Question QuestionFile QuestionsKind TEMPERATURE answer_to check_debiasing longest_context questions_of
        without_context without_thoughts
    """,
    "evaluate.plan": "Plan System SystemPlan build_systems site_of",
    "evaluate.results": "PAGE",
    "evaluate.run": """
        HEAD Run lower_is_better plan_in read_head
    """,
    "evaluate.tables": "Column LinePlot Note PagePart PageSection PlotLine PlotPoint Table",
    "evaluate.thresholds": "Bound",
    "evaluate.workers": "Workers",
    "report.page": "STYLES TEMPLATES",
    "report.record": """
        PlainRecord answer_record exposure_record hit_record result_record step_record usage_record
    """,
}
"""Module -> the names from it. `python docs/generate.py` writes extend.pyi, which type checkers read, from this."""

_HOME_OF = {name: f"fairagent.{module}" for module, names in HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fairagent.extend' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
