"""Each case of cases.yaml, which docs/reference/cases.md is made of, has its test: here, or where ELSEWHERE says."""

from __future__ import annotations

import re
from pathlib import Path

from fairagent.storage.readers import parse_yaml

FAULTS = Path(__file__).parent
CASES = parse_yaml((FAULTS / "cases.yaml").read_text(encoding="utf-8"))
ELSEWHERE = {
    1: "test_retry_after",
    4: "test_a_budget_and_a_wrong_key_are_of_all_systems",
    7: "test_each_refusal_is_one_rung_down",
    37: "test_a_damaged_database_is_moved_aside",
    38: "test_a_pickle_in_a_row_or_a_file_is_never_opened_and_no_file_is_removed",
    3: "test_overload_is_tried_exactly_as_often_as_set",
    **dict.fromkeys((121, 224), "test_what_happens_in_another_process_of_a_crew_is_raised_here"),
    **dict.fromkeys((9, 10), "test_what_is_no_reply_is_an_error_of_its_kind"),
    13: "test_missing_usage_is_estimated",
    26: "test_hostile_templates_are_refused_with_little_work",
    33: "test_every_accepted_form_reads_the_same",
    34: "test_trec_runs_are_read_by_others_as_they_were_meant",
    14: "test_it_opens_for_a_while_and_closes_by_one_answer_or_opens_again",
    15: "test_the_last_object_that_fits_is_read",
    16: "test_three_invalid_replies_are_an_error_with_text_and_usage",
    65: "test_own_error_or_success",
    62: "test_everything_from_outside_is_text",
    108: "test_a_changed_collection_and_another_model_of_the_same_name_are_refused",
    110: "test_check_refuses_an_index_of_other_embeddings",
    111: "test_where_it_is_wanted_and_not_there_the_way_out_is_named",
    112: "test_the_fewest_cells_that_reach_the_floor",
    115: "test_a_changed_file_of_equal_size_is_read_again",
    181: "test_nothing_is_taken_over_from_another_model_or_from_damaged_files",
    183: "test_only_new_texts_are_encoded_and_every_file_is_the_same",
    218: "test_hostile_renderings_are_stopped",
    82: "test_a_file_that_was_cut_off",
    83: "test_an_architecture_that_nobody_knows",
    87: "test_a_port_in_use",
    128: "test_another_encoder_is_found_by_its_dimensions",
    130: "test_an_experiment_notices_another_index",
    134: "test_nothing_is_written_into_the_index",
    **dict.fromkeys((135, 136), "test_what_is_wrong_in_a_csv_file_is_named_with_its_line"),
    **dict.fromkeys((138, 139, 140), "test_errors_name_their_row"),
    190: "test_bad_input_is_one_error",
    145: "test_nothing_is_told_without_the_token",
    146: "test_other_names_and_pages_are_refused_also_without_a_token",
    147: "test_the_files_of_the_page_are_these_and_no_others",
    150: "test_a_port_in_use_is_said_before_the_collection_is_opened",
    **dict.fromkeys((154, 174), "test_199_a_silent_model_holds_up_no_search_and_who_leaves_ends_the_request_to_it"),
    163: "test_a_path_outside_the_runs_and_a_run_without_a_page",
    230: "test_what_is_no_hit_says_what_was_looked_for",
    231: "test_what_is_enough",
    233: "test_a_file_of_users_that_others_have_rights_to",
    234: "test_processes_share_a_budget_and_what_a_killed_one_had_reserved_counts",
    236: "test_what_is_not_safe_is_refused_before_the_collection_is_opened",
}
"""Cases that are shown where the module is tested, each by a test of this name."""


def test_every_row_has_its_tests() -> None:
    rows = [number for cases in CASES.values() for number in cases]
    assert len(set(rows)) == len(rows)
    source = "\n".join(path.read_text(encoding="utf-8") for path in FAULTS.parent.rglob("test_*.py"))
    # A test may stand for several cases: test_11_and_12_...
    tested = re.findall(r"^def test_((?:\d+_and_)*\d+)_", source, re.MULTILINE)
    numbers = {int(number) for found in tested for number in found.split("_and_")}
    assert set(ELSEWHERE.values()) <= set(re.findall(r"def (\w+)", source))
    assert set(rows) == numbers | set(ELSEWHERE)
