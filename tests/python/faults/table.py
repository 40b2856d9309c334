"""Which tests show each row of the table in docs/faults.md: (file below tests, a test's name or the beginning of it)."""

EXIT = "python/launcher/test_exit.py"
ENDING = "python/launcher/test_ending_options.py"
RENDEZVOUS = "python/launcher/test_rendezvous.py"
SSH = "python/remote/test_ssh_jobs.py"
ROUNDS = "python/remote/test_rounds.py"
SLURM = "python/slurm/test_slurm_ends.py"
JOB = "python/runjob/test_job.py"
FAILING = "python/runjob/test_failing.py"
RANKS = "python/faults/test_faulty_ranks.py"
AGENTS = "python/faults/test_faulty_agents.py"
NETWORK = "python/faults/test_faulty_network.py"
HOSTS = "python/faults/test_faulty_hosts.py"
LIMITS = "python/faults/test_faulty_limits.py"
SLURM_ELASTIC = "python/slurm/test_slurm_elastic.py"
BOOTSTRAP = "launcher/remote/bootstrap_test.cc"

ROWS = {
    1: [(EXIT, "test_first_failed_rank_decides"), (EXIT, "test_status_is_passed_on"), (SSH, "test_a_failed_rank_ends_the_others_everywhere")],
    2: [(EXIT, "test_killed_rank_gives_128_plus_signal"), (ROUNDS, "test_a_rank_that_is_killed_is_named_and_ends_the_job")],
    3: [(RANKS, "test_a_crash_in_a_collective_is_named_with_the_stack")],
    4: [(FAILING, "test_a_rank_that_raises_is_named_with_its_exception")],
    5: [(JOB, "test_an_uncaught_exception_also_ends_a_rank_whose_thread")],
    6: [(FAILING, "test_a_rank_that_ended_normally_is_named_with_the_operation")],
    7: [(RENDEZVOUS, "test_rank_that_never_calls_init_is_named")],
    8: [(RENDEZVOUS, "test_rank_that_ends_without_init_is_named_at_once")],
    9: [("python/runjob/test_stalls.py", "test_"), (ROUNDS, "test_a_stall_names_the_missing_rank_alone")],
    10: [(RANKS, "test_a_rank_that_is_stopped_in_a_collective_is_named_when_time_is_up")],
    11: [(ENDING, "test_a_rank_that_ignores_sigterm_is_killed_after_the_grace_period"), (SSH, "test_a_rank_that_ignores_sigterm_is_killed_after_the_grace_period")],
    12: [(EXIT, "test_daemons_are_gone_when_the_ranks_have_ended")],
    13: [(JOB, "test_a_forked_child_gets_an_error_and_its_parent_goes_on")],
    14: [("runtime/failures_test.cc", "TEST_CASE")],
    15: [(RANKS, "test_a_rank_that_closes_all_its_descriptors_ends_well")],
    16: [(EXIT, "test_nothing_is_left_when_one_of_us_is_killed"), (SSH, "test_nothing_is_left_when_one_of_ours_is_killed_on_a_host"),
         (SLURM, "test_a_killed_agent_is_a_lost_host")],
    17: [(EXIT, "test_nothing_is_left_when_one_of_us_is_killed"), (SSH, "test_nothing_is_left_when_one_of_ours_is_killed_on_a_host")],
    18: [(EXIT, "test_nothing_is_left_when_two_of_us_are_killed")],
    19: [(AGENTS, "test_a_stopped_agent_on_another_host_is_given_up")],
    20: [(AGENTS, "test_a_stopped_agent_or_guard_on_this_host_is_given_up"),
         (AGENTS, "test_an_interrupted_job_ends_although_its_agent_is_stopped"),
         (AGENTS, "test_an_agent_on_this_host_that_is_only_late_is_waited_for")],
    21: [(SSH, "test_an_agent_that_speaks_nonsense_ends_the_job")],
    22: [(AGENTS, "test_an_upload_that_is_cut_off_leaves_nothing"), (BOOTSTRAP, "an upload that is cut off half-way")],
    23: [(BOOTSTRAP, "a damaged copy is never used")],
    24: [(EXIT, "test_too_few_descriptors_name_the_host"), (EXIT, "test_just_enough_descriptors_lose_no_output")],
    25: [(LIMITS, "test_a_rank_that_cannot_be_started_is_named_with_the_reason"),
         (LIMITS, "test_the_others_go_on_when_no_process_can_be_started")],
    26: [(EXIT, "test_nothing_is_left_when_one_of_us_is_killed"), (SSH, "test_nothing_is_left_when_runjob_is_killed"),
         (RANKS, "test_without_close_range_nothing_is_left_when_runjob_is_killed")],
    27: [(EXIT, "test_nothing_is_left_when_two_of_us_are_killed")],
    28: [(EXIT, "test_interrupt_reaches_every_rank_and_gives_130"), (EXIT, "test_second_interrupt_kills_at_once")],
    29: [(EXIT, "test_terminate_gives_143"), (SSH, "test_a_signal_ends_it_everywhere"), (RANKS, "test_sighup_gives_129")],
    30: [(SSH, "test_a_stopped_runjob_is_not_taken_for_dead"), (RANKS, "test_ranks_that_stood_still_for_longer_than_they_may_wait_go_on")],
    31: [(AGENTS, "test_a_runjob_that_stood_still_blames_itself")],
    32: [(EXIT, "test_reader_of_our_output_goes_away")],
    33: [(EXIT, "test_the_disk_of_our_output_is_full"), (EXIT, "test_the_last_line_does_not_fit_on_the_disk_of_our_output")],
    34: [(ENDING, "test_timeout_ends_the_job_with_124")],
    35: [("python/launch/test_run_function.py", "test_a_killed_caller_leaves_nothing")],
    36: [(SSH, "test_a_cut_network_ends_the_job_on_both_sides"), (SLURM, "test_a_cut_network_ends_the_job")],
    37: [(HOSTS, "test_an_interruption_of_two_seconds_ends_nothing"), (HOSTS, "test_an_interruption_at_the_end_of_a_job_ends_nothing"),
         (HOSTS, "test_an_interruption_at_the_start_of_a_job_ends_nothing")],
    38: [(HOSTS, "test_a_network_that_works_in_one_direction_is_cut")],
    39: [(NETWORK, "test_a_data_network_that_fails_is_blamed_and_no_rank")],
    40: [(NETWORK, "test_a_data_network_that_fails_is_blamed_and_no_rank")],
    41: [(SSH, "test_sessions_that_sshd_ends_end_the_job")],
    42: [(SSH, "test_sshd_may_be_restarted_meanwhile")],
    43: [(SSH, "test_every_bad_host_is_named_and_the_good_ones_are_left_alone")],
    44: [(HOSTS, "test_a_slow_network_full_of_output_is_not_taken_for_dead")],
    45: [("launcher/sealed_channel/agent_listener_test.cc", "TEST_CASE"), ("python/remote/test_strangers.py", "test_")],
    46: [(HOSTS, "test_a_host_without_power_is_lost")],
    47: [(HOSTS, "test_a_host_that_stands_still_is_lost_and_ends_its_ranks_afterwards")],
    48: [(BOOTSTRAP, "it is of another kind"), (BOOTSTRAP, "its kernel is too old")],
    49: [(SSH, "test_a_changed_host_key_is_never_accepted")],
    50: [(SLURM, "test_scancel_gives_each_rank"), (SLURM, "test_the_time_limit_gives_the_ranks"),
         (SLURM, "test_a_node_that_slurm_sets_down_ends_the_job"), (SLURM_ELASTIC, "test_the_others_go_on_when_slurm_sets_a_node_down"),
         (SLURM_ELASTIC, "test_an_elastic_job_that_slurm_ends_has_ended")],
    51: [(SSH, "test_a_home_that_cannot_take_the_agent")],
    52: [(HOSTS, "test_a_host_without_a_place_for_sockets_says_so")],
    53: [(RANKS, "test_a_full_disk_of_a_file_is_told_and_the_job_goes_on"), ("runtime/timeline/trace_file_test.cc", "TEST_CASE"),
         ("launcher/output/output_relay_test.cc", "a new process whose files")],
    54: [(EXIT, "test_a_deleted_current_directory_needs_wdir")],
    55: [(RANKS, "test_a_wall_clock_that_jumps_changes_nothing")],
    56: [(LIMITS, "test_a_rank_without_memory_is_named"), (LIMITS, "test_the_others_go_on_when_the_out_of_memory_killer_takes_a_rank")],
    57: [(RANKS, "test_without_memfd_the_ranks_use_tcp"), (RANKS, "test_a_job_runs_without_large_files_or_much_memory")],
    58: [("python/runjob/test_bad_input.py", "test_"), ("hostfile/parse_hosts_test.cc", "TEST_CASE")],
    59: [(EXIT, "test_command_not_found"), (EXIT, "test_command_not_executable")],
    60: [("launcher/output/terminal_text_test.cc", "TEST_CASE"), ("launcher/output/plain_text_test.cc", "TEST_CASE")],
}  # fmt: skip
