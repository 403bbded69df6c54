"""What is promised, where, and which tests hold it?

- Every promise has an id, a source (the page of the documentation that makes it) and its tests.
- Checked in both directions by `tests/unit/test_requirements.py`: each test named here exists, and each file of `tests/attacks`
  is named by a promise. `docs/promises.md` is made from this file.
- A test is a file, or `file::function`. `pending` says that its tests have not landed; every run of the tests prints those.

    >>> PROMISES[0].id
    'trust.influence'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Promise:
    """One promise.

    Attributes:
        id: Stable.
        source: The page that makes it, relative to `docs`.
        text: One sentence.
        tests: What holds it: `tests/…/test_x.py`, or `tests/…/test_x.py::test_name`.
        pending: Whether its tests have not landed.
    """

    id: str
    source: str
    text: str
    tests: tuple[str, ...] = ()
    pending: bool = False


def _waiting(id: str, source: str, text: str) -> Promise:
    return Promise(id, source, text, pending=True)


PROMISES: Final = (
    # --- who is trusted
    Promise(
        "trust.influence",
        "concepts.md",
        "a derived segment carries the union of its parents' influences",
        ("tests/attacks/test_roles_are_claims.py::test_what_was_derived_carries_the_union_of_its_parents_influences",),
    ),
    Promise(
        "trust.role-is-a-claim",
        "concepts.md",
        "text under a user or system role that no channel vouches for is W",
        ("tests/attacks/test_roles_are_claims.py",),
    ),
    Promise(
        "trust.request-channel",
        "concepts.md",
        "a trusted request comes only through a channel whose credential the agent does not hold",
        (
            "tests/attacks/test_agent_cannot_reach_the_request_channel.py",
            "tests/attacks/test_unlinked_sessions.py",
        ),
    ),
    Promise(
        "trust.no-task",
        "threat-model.md",
        "with no task open, request authority is empty and the refusal says how to open one",
        (
            "tests/attacks/test_agent_cannot_reach_the_request_channel.py::test_with_no_task_open_the_request_is_empty_and_the_refusal_says_how_to_open_one",
            "tests/unit/test_gate.py::test_with_no_task_open_nothing_is_granted_and_the_refusal_says_how_to_open_one",
            "tests/unit/test_session.py::test_a_task_gives_what_it_grants_and_takes_it_away_when_it_stops",
        ),
    ),
    Promise(
        "trust.answers-are-w",
        "threat-model.md",
        "tool results, descriptions, prompts and resources of servers are W",
        (
            "tests/attacks/test_tool_text_is_untrusted.py",
            "tests/attacks/test_refusal_text_is_untrusted.py",
        ),
    ),
    Promise(
        "self.protected",
        "threat-model.md",
        "no admitted atom touches CXI's own files, through links too, and no policy lifts that",
        ("tests/attacks/test_own_files.py", "tests/attacks/test_kept_decisions.py"),
    ),
    Promise(
        "self.state-outside",
        "threat-model.md",
        "state lives outside the workspace, with mode 0700",
        (
            "tests/unit/test_guard.py::test_state_lies_outside_the_root_and_is_the_users_alone",
            "tests/unit/test_guard.py::test_a_state_folder_inside_the_root_is_a_start_up_error",
            "tests/unit/test_guard.py::test_the_default_state_folder_is_below_xdg_state_home",
        ),
    ),
    Promise(
        "self.pins",
        "configuration.md",
        "a changed tool definition or server identity is refused until a person pins it",
        (
            "tests/unit/config/test_config_lock.py",
            "tests/unit/test_guard.py::test_a_definition_that_changed_is_refused_and_the_others_are_not",
            "tests/unit/test_guard.py::test_a_server_whose_program_changed_serves_nothing_not_even_its_methods",
        ),
    ),
    Promise(
        "self.no-reload",
        "threat-model.md",
        "nothing reloads from a working tree by itself",
        ("tests/unit/test_guard.py::test_nothing_reloads_while_it_is_open",),
    ),
    # --- one turn
    Promise(
        "turn.order",
        "concepts.md",
        "the steps have one order, and a failed step ends the way to the sink",
        (
            "tests/unit/test_gate.py",
            "tests/conformance/test_gate_vectors.py",
        ),
    ),
    Promise(
        "turn.every-reason",
        "concepts.md",
        "a refusal names the reasons of all pure steps at once",
        (
            "tests/unit/test_gate.py::test_a_refusal_names_every_reason_in_the_order_of_the_steps",
            "tests/unit/test_gate.py::test_a_call_that_cannot_be_read_whole_is_refused_with_all_that_is_wrong",
            "tests/unit/test_gate.py::test_a_stated_effect_that_does_not_fit_what_is_there_is_inexact_and_still_needs_a_grant",
        ),
    ),
    Promise(
        "turn.refusal-is-a-result",
        "concepts.md",
        "a refusal reaches the agent as a tool result with isError, never as a crash",
        (
            "tests/unit/test_session.py::test_a_refusal_is_a_tool_result_that_names_codes_and_helps_and_nothing_was_called",
            "tests/unit/test_session.py::test_no_call_that_an_agent_can_send_raises_or_reaches_a_sink",
            "tests/unit/test_session.py::test_nesting_without_end_is_refused",
        ),
    ),
    Promise(
        "turn.unknown-is-refused",
        "concepts.md",
        "unknown, stale, ambiguous, unparsed and unsupported are refused",
        (
            "tests/unit/test_gate.py",
            "tests/attacks/test_empty_effects.py::test_what_cannot_be_planned_is_not_planned_as_nothing",
        ),
    ),
    Promise(
        "turn.written-anew",
        "concepts.md",
        "a server is sent the manifest's canonical values, never the bytes received",
        (
            "tests/unit/authority/test_reading.py::test_the_arguments_are_written_anew_from_canonical_values",
            "tests/unit/test_session.py::test_what_is_admitted_reaches_the_sink_once_written_anew_and_leaves_a_receipt",
            "tests/property/test_every_binding.py::test_what_was_judged_is_what_is_sent_whatever_becomes_of_the_callers_objects",
        ),
    ),
    Promise(
        "turn.session-bound",
        "threat-model.md",
        "a call that maps to no open session may only list; sessions share nothing but registry, ledger and log",
        (
            "tests/attacks/test_unlinked_sessions.py",
            "tests/attacks/test_cross_session.py",
            "tests/attacks/test_timing_and_volume.py",
        ),
    ),
    Promise(
        "turn.origin-index",
        "declassifier.md",
        "what admitted, refused or unknown calls touched releases nothing until a person endorses it",
        ("tests/attacks/test_own_records_as_sources.py", "tests/attacks/test_origin_index.py"),
    ),
    # --- canonical form and values
    Promise(
        "canonical.rfc8785",
        "concepts.md",
        "canonical bytes are RFC 8785, byte-equal to the reference",
        (
            "tests/property/test_canonical_bytes.py::test_bytes_are_those_of_the_reference",
            "tests/property/test_canonical_bytes.py::test_numbers_are_those_of_the_reference",
        ),
    ),
    Promise(
        "canonical.refused-at-the-edge",
        "concepts.md",
        "duplicate keys, inexact numbers and lone surrogates are refused",
        (
            "tests/property/test_canonical_bytes.py::test_a_key_that_is_there_twice_is_refused_at_any_depth",
            "tests/property/test_canonical_bytes.py::test_numbers_that_are_not_exact_are_refused_wherever_they_stand",
            "tests/property/test_canonical_bytes.py::test_a_lone_surrogate_is_refused_in_texts_and_keys",
        ),
    ),
    Promise(
        "canonical.injective",
        "concepts.md",
        "two values never share a digest",
        ("tests/property/test_canonical_bytes.py::test_two_values_never_share_a_digest",),
    ),
    Promise(
        "value.paths",
        "concepts.md",
        "paths resolve links, missing leaves, case and Unicode as the kernel does",
        (
            "tests/property/test_path_resolution.py",
            "tests/attacks/test_case_and_unicode_paths.py",
            "tests/attacks/test_links_out_of_the_root.py",
        ),
    ),
    Promise(
        "value.hidden-text",
        "reason-codes.md",
        "invisible, bidirectional and confusable characters are shown, and refused in trusted sources",
        ("tests/unit/values/test_hidden.py",),
    ),
    # --- contracts
    Promise(
        "contract.total",
        "first-contract.md",
        "what no contract names is refused",
        (
            "tests/unit/authority/test_reading.py::test_an_unknown_key_is_refused_whatever_it_looks_like",
            "tests/unit/config/test_config_check.py::test_a_tool_without_a_contract_fails",
            "tests/unit/config/test_config_check.py::test_a_property_that_no_contract_names_fails",
        ),
    ),
    Promise(
        "contract.lint",
        "configuration.md",
        "an unknown key, a duplicate id or an unclassified field is a start-up error with file, line and mend",
        (
            "tests/unit/config/test_config_load.py",
            "tests/unit/config/test_config_check.py",
        ),
    ),
    # --- field authority
    Promise(
        "field.no-authority",
        "concepts.md",
        "untrusted text gives a protected field no authority, unique or not",
        (
            "tests/attacks/test_flooded_or_truncated_candidates.py::test_text_that_is_unique_gives_no_authority_however_often_it_is_said",
        ),
    ),
    Promise(
        "field.clauses",
        "threat-model.md",
        "a negated, questioned, conditional, quoted, fenced or forwarded clause gives nothing",
        ("tests/attacks/test_request_polarity_and_quotation.py",),
    ),
    Promise(
        "field.tuples",
        "concepts.md",
        "fields that belong together come from one clause, one record or one approval",
        ("tests/attacks/test_swapped_tuples.py",),
    ),
    Promise(
        "field.ambiguity",
        "threat-model.md",
        "several candidates that W could reach are refused",
        (
            "tests/attacks/test_flooded_or_truncated_candidates.py::test_a_flooded_selection_of_one_is_ambiguous_at_the_gate",
            "tests/attacks/test_flooded_or_truncated_candidates.py::test_voiding_one_of_two_candidates_makes_the_other_no_less_ambiguous",
        ),
    ),
    Promise(
        "approval.bound",
        "approvals.md",
        "a person's yes is to one call, effect and display, once; a no to a call outlasts every grant",
        ("tests/attacks/test_approvals.py", "tests/unit/authority/test_desk.py", "tests/e2e/test_approvals.py"),
    ),
    Promise(
        "field.frozen-selection",
        "declassifier.md",
        "a trusted selection is computed on the state before the task's first admitted sink call, and frozen",
        ("tests/attacks/test_moving_selection.py",),
    ),
    Promise(
        "field.choice",
        "first-contract.md",
        "untrusted text may steer inside a bounded choice, never outside",
        (
            "tests/unit/test_gate.py::test_a_choice_is_open_inside_its_policy_and_closed_outside",
            "tests/unit/test_gate.py::test_a_choice_is_bounded_by_the_policy_that_it_names_and_by_no_other_permit",
        ),
    ),
    Promise(
        "release.bound",
        "declassifier.md",
        "a release is void for another field, task, epoch or read set, and after its expiry",
        (
            "tests/attacks/test_flooded_or_truncated_candidates.py::test_a_release_binds_what_its_value_was_judged_by",
            "tests/unit/test_session.py::test_a_release_is_void_under_another_epoch_and_another_task",
        ),
    ),
    Promise(
        "release.complete-read",
        "declassifier.md",
        "a truncated or filtered read releases nothing",
        ("tests/attacks/test_flooded_or_truncated_candidates.py",),
    ),
    # --- effects
    Promise(
        "effect.complete",
        "effects.md",
        "an adapter states every atom that the real program applies, or refuses",
        (
            "tests/attacks/test_git_hooks.py",
            "tests/attacks/test_server_settings.py",
            "tests/attacks/test_swapped_parents.py",
            "tests/property/test_git_effects.py",
            "tests/property/test_file_effects.py",
        ),
    ),
    Promise(
        "effect.pure",
        "effects.md",
        "a plan learns of the world through the snapshot alone, and each read enters the read set",
        (
            "tests/property/test_every_binding.py::test_a_snapshot_is_asked_for_nothing_that_is_not_in_the_read_set",
            "tests/unit/test_gate.py::test_a_decision_is_pure_and_equal_for_equal_inputs",
            "tests/unit/effects/test_snapshot.py",
        ),
    ),
    Promise(
        "effect.snapshot",
        "concepts.md",
        "a call whose read set changed before launch is refused",
        (
            "tests/unit/test_session.py::test_what_changes_between_draw_and_sink_is_refused_and_the_draw_is_given_back",
            "tests/unit/test_session.py::test_a_release_whose_source_changed_between_draw_and_sink_is_refused",
            "tests/unit/test_session.py::test_the_effect_that_a_person_approved_is_the_one_that_happens",
            "tests/attacks/test_changed_between_decide_and_sink.py",
        ),
    ),
    Promise(
        "effect.same-answer",
        "effects.md",
        "what the gate reads of a git folder by itself, or remembers of git, is git's answer at that moment, byte for byte",
        (
            "tests/property/test_git_folder.py",
            "tests/unit/sinks/test_gitfolder.py",
            "tests/unit/sinks/test_history.py",
            "tests/unit/sinks/test_index.py",
        ),
    ),
    Promise(
        "effect.no-op",
        "effects.md",
        "a payload without atoms is answered without calling the sink",
        (
            "tests/attacks/test_empty_effects.py",
            "tests/unit/test_session.py::test_a_no_op_is_answered_without_calling_the_sink_and_spends_nothing",
        ),
    ),
    Promise(
        "effect.patterns",
        "effects.md",
        "a glob target is its own kind, and refused if it could meet a forbid",
        ("tests/attacks/test_glob_targets.py",),
    ),
    # --- policy
    Promise(
        "policy.default-deny",
        "concepts.md",
        "the call and every atom need a permit; a forbid wins",
        (
            "tests/unit/policy/test_monitor.py",
            "tests/unit/policy/test_maintainer_example.py",
        ),
    ),
    Promise(
        "policy.errors-deny",
        "concepts.md",
        "a policy that raises an error denies, a forbid too",
        ("tests/attacks/test_erroring_forbid.py",),
    ),
    Promise(
        "policy.no-escapes",
        "concepts.md",
        "an agent's JSON cannot forge an entity or a key of the context",
        ("tests/attacks/test_json_escapes_into_cedar.py",),
    ),
    Promise(
        "policy.as-cedar",
        "concepts.md",
        "a decision is Cedar's over all policies, however it was found",
        (
            "tests/property/test_policy_evaluator.py",
            "tests/property/test_policy_slices.py",
            "tests/unit/policy/test_evaluator.py",
            "tests/unit/policy/test_checker.py",
            "tests/unit/policy/test_index.py",
        ),
    ),
    Promise(
        "policy.strict",
        "configuration.md",
        "an unknown action, attribute or principal, a duplicate id and an empty registry are start-up errors",
        ("tests/unit/policy/test_registry.py", "tests/unit/policy/test_schema.py"),
    ),
    Promise(
        "policy.epoch",
        "concepts.md",
        "a new epoch ends every release, grant and commitment of the older, also from A to B and back",
        (
            "tests/attacks/test_storage_failures.py::test_an_epoch_that_returns_is_a_new_one",
            "tests/unit/ledger/test_ledger.py::test_an_older_epoch_with_the_same_digest_is_refused",
            "tests/attacks/test_epoch_there_and_back.py",
        ),
    ),
    # --- the event
    Promise(
        "event.grant-first",
        "concepts.md",
        "a capability is drawn only from a grant that existed before the proposal",
        (
            "tests/attacks/test_agent_cannot_reach_the_request_channel.py::test_a_proposal_makes_no_grant",
            "tests/unit/test_gate.py::test_a_task_that_does_not_grant_the_tool_gives_no_event",
        ),
    ),
    Promise(
        "event.once",
        "ledger-and-log.md",
        "a capability is consumed once, by one winner, before the sink runs",
        (
            "tests/attacks/test_storage_failures.py::test_two_processes_that_contend_for_one_grant_get_one_lease",
            "tests/property/test_ledger_machine.py",
            "tests/unit/ledger/test_ledger.py::test_threads_that_race_for_one_grant_get_one_lease",
        ),
    ),
    Promise(
        "event.repeat",
        "first-contract.md",
        "a second event with the same key is refused, replayed or counted, as the contract says",
        (
            "tests/unit/ledger/test_sqlite_ledger.py::test_a_replay_gets_the_recorded_answer_and_draws_nothing",
            "tests/unit/ledger/test_ledger.py::test_the_limit_ends_the_grant",
            "tests/attacks/test_replays_with_new_ids.py",
        ),
    ),
    Promise(
        "event.unknown-blocks",
        "ledger-and-log.md",
        "an unknown outcome blocks its event, in every session, until it is reconciled or released",
        (
            "tests/attacks/test_killed_gateways.py",
            "tests/unit/ledger/test_ledger.py::test_an_equal_event_waits_while_one_is_under_way_or_unknown",
            "tests/unit/ledger/test_ledger.py::test_a_lease_of_a_writer_that_is_gone_becomes_unknown",
            "tests/unit/test_session.py::test_an_unknown_outcome_blocks_its_event_and_no_other_until_a_person_says_how_it_ended",
            "tests/unit/test_session.py::test_an_unknown_outcome_whose_effect_can_be_seen_is_reconciled",
        ),
    ),
    Promise(
        "event.every-binding",
        "concepts.md",
        "an admissible action of which any one binding is changed is refused",
        (
            "tests/property/test_every_binding.py",
            "tests/property/test_manifest_digests.py",
        ),
    ),
    Promise(
        "ledger.fails-closed",
        "ledger-and-log.md",
        "a ledger or log that cannot be written refuses, and says so",
        (
            "tests/attacks/test_storage_failures.py",
            "tests/unit/test_session.py::test_a_ledger_that_cannot_be_written_refuses_and_nothing_is_called",
        ),
    ),
    Promise(
        "ledger.model",
        "ledger-and-log.md",
        "no interleaving of draws, consumes, crashes, recoveries, revocations, epochs and persons breaks the ledger's invariants",
        (
            "tests/property/test_ledger_interleavings.py",
            "tests/property/test_ledger_machine.py",
        ),
    ),
    Promise(
        "ledger.reconcile",
        "ledger.md",
        "an unknown call is reconciled only by what the world certainly says; the rest stays unknown, with the reason",
        (
            "tests/unit/effects/test_hindsight.py",
            "tests/unit/cli/test_ledger_commands.py",
        ),
    ),
    Promise(
        "ledger.faults",
        "ledger-and-log.md",
        "killed at any step, on full or damaged disks, under contention: one call, one effect, by an independent count",
        ("tests/unit/lab/test_ledger_faults.py",),
    ),
    Promise(
        "ledger.many-gateways",
        "ledger-postgresql.md",
        "gateways on several hosts share one ledger: the same answers, and a cut connection is answered truly or not at all",
        (
            "tests/unit/ledger/test_postgres_ledger.py",
            "tests/unit/ledger/test_ledger.py",
            "tests/e2e/test_gateway_over_postgres.py",
        ),
    ),
    Promise(
        "ledger.failover",
        "ledger-postgresql.md",
        "a primary that is killed under load loses no acknowledged consume to its synchronous standby, and none happens twice",
        ("tests/e2e/test_postgres_failover.py",),
    ),
    Promise(
        "ledger.tenants-apart",
        "ledger-postgresql.md",
        "of another tenant's rows nothing is seen, spent, revoked or released, with raw SQL neither",
        ("tests/attacks/test_tenants_apart.py",),
    ),
    Promise(
        "ledger.one-sync",
        "ledger-and-log.md",
        "exactly one sync before the sink runs",
        ("tests/unit/ledger/test_sqlite_ledger.py::test_consume_syncs_exactly_once_and_a_settlement_never",),
    ),
    Promise(
        "log.chain",
        "log.md",
        "a log entry cannot be altered, removed, put in, repeated or reordered before a checkpoint without being named",
        (
            "tests/conformance/test_log_vectors.py",
            "tests/property/test_log_damage.py",
            "tests/unit/log/test_chain.py",
        ),
    ),
    Promise(
        "log.proofs",
        "log.md",
        "inclusion and consistency proofs are those of RFC 9162, and one of which anything is changed does not hold",
        ("tests/unit/log/test_tree.py", "tests/conformance/test_log_vectors.py"),
    ),
    Promise(
        "log.keys",
        "log.md",
        "a key signs from its introduction by the one before it until its own of the next; rotations survive crashes at any step",
        ("tests/unit/log/test_succession.py", "tests/unit/log/test_rotation.py", "tests/unit/log/test_signing.py"),
    ),
    Promise(
        "log.exports",
        "log.md",
        "an export, whole or in part, verifies by the public key alone, and shows nothing of what it leaves out",
        ("tests/unit/log/test_export.py", "tests/unit/cli/test_log_commands.py"),
    ),
    Promise(
        "log.receipts",
        "receipts.md",
        "a receipt verifies offline with the public key alone, here and by other people's programs",
        ("tests/unit/log/test_receipt.py", "tests/docs/test_receipt_recipes.py"),
    ),
    Promise(
        "log.commitments",
        "log.md",
        "values enter the log as salted commitments whose openings can be erased",
        (
            "tests/unit/test_session.py::test_values_stand_in_the_log_as_salted_commitments_whose_openings_can_be_erased",
            "tests/unit/log/test_opening.py",
            "tests/unit/log/test_receipt.py::test_after_erasure_the_chain_and_the_receipt_still_verify",
        ),
    ),
    # --- surfaces
    Promise(
        "gateway.transparent",
        "mcp-methods.md",
        "a client sees through the gateway what it sees without, but for the listed differences",
        ("tests/e2e/test_gateway_relays_as_is.py",),
    ),
    Promise(
        "gateway.methods",
        "mcp-methods.md",
        "a method that has no row is refused",
        (
            "tests/unit/gateway/test_method.py",
            "tests/attacks/test_unlinked_sessions.py::test_with_no_task_an_agent_looks_and_lists_and_a_task_needs_the_credential",
        ),
    ),
    Promise(
        "event.terms",
        "invocation.md",
        "items, sums, sequences, schedules and retries of a grant hold exactly, whatever was asked at the same time",
        ("tests/unit/ledger/test_limits.py", "tests/unit/test_grants.py", "tests/property/test_grants_in_full.py"),
    ),
    Promise(
        "event.delegation",
        "invocation.md#delegation",
        "a delegation never gives more than the right that it came from, and ends with it",
        ("tests/attacks/test_widened_delegations.py", "tests/unit/authority/test_delegation.py"),
    ),
    Promise(
        "gateway.names",
        "threat-model.md",
        "tool names are routed by a table; a collision is a start-up error",
        ("tests/attacks/test_name_collisions.py",),
    ),
    Promise(
        "gateway.upstreams",
        "threat-model.md",
        "an upstream that dies, hangs, floods or speaks nonsense hurts neither the others nor the gate",
        ("tests/attacks/test_nonsense_upstreams.py",),
    ),
    Promise(
        "mode.enforce-only",
        "concepts.md",
        "a receipt of a mode that does not enforce never verifies as an admission",
        ("tests/unit/log/test_receipt.py::test_a_receipt_of_shadow_mode_is_issued_and_never_verifies",),
    ),
    Promise(
        "demo.exact",
        "index.md",
        "a worst-case agent behind the gate makes exactly the authorized changes",
        ("tests/e2e/test_demo.py",),
    ),
    Promise(
        "package.wheel-alone",
        "index.md",
        "a built wheel works with the run-time pins and nothing else",
        ("tests/e2e/test_wheel_alone.py",),
    ),
    Promise(
        "shell.whole-or-refused",
        "effects-shell.md",
        "a shell text is read whole, by two readers that agree, or refused with its bytes and what would help",
        (
            "tests/unit/effects/test_shell_adapter.py::test_what_is_not_read_whole_is_unreadable",
            "tests/unit/effects/test_shell_adapter.py::test_a_refusal_names_its_bytes_and_what_would_help",
            "tests/unit/effects/test_shell_adapter.py::test_without_the_second_reader_nothing_is_admitted",
        ),
    ),
    Promise(
        "shell.nothing-beside-the-plan",
        "effects-shell.md",
        "what bash and its programs do to files, programs and connections is in the plan",
        ("tests/property/test_shell_effects.py", "tests/attacks/test_shell_surprises.py"),
    ),
    Promise(
        "shell.no-grammar-no-admission",
        "effects-shell.md",
        "a program without a grammar, or an option that its grammar does not list, is refused",
        ("tests/unit/effects/test_shell_adapter.py::test_what_is_not_known_is_unsupported",),
    ),
    Promise(
        "shell.bounded",
        "effects-shell.md",
        "any text ends in bounded time with a plan or a refusal",
        (
            "tests/unit/effects/test_shell_adapter.py::test_huge_texts_end_soon_with_a_value",
            "tests/property/test_shell_effects.py::test_any_characters_give_a_plan_or_a_refusal",
        ),
    ),
    Promise("suite.no-network", "index.md", "no test leaves the machine", ("tests/unit/test_guards.py",)),
    Promise(
        "docs.current",
        "index.md",
        "generated pages, links and the code of the documentation are current",
        ("tests/docs/test_docs_are_current.py",),
    ),
)
