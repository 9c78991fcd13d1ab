noinst_LIBRARIES += libprofiler.a
libprofiler_a_SOURCES = \
	src/profiler/allocations.c src/profiler/allocations.h \
	src/profiler/allocators.c src/profiler/allocators.h \
	src/profiler/attribute.c src/profiler/attribute.h \
	src/profiler/attribute-files.c \
	src/profiler/attribute-internal.h \
	src/profiler/attribute-state.c \
	src/profiler/attribute-types.c \
	src/profiler/attribute-who.c \
	src/profiler/block-grants.c src/profiler/block-grants.h \
	src/profiler/block-notes.c src/profiler/block-notes.h \
	src/profiler/block-proofs.c src/profiler/block-proofs.h \
	src/profiler/blocked-chains.c src/profiler/blocked-chains.h \
	src/profiler/blocked-call.c src/profiler/blocked-call.h \
	src/profiler/c-library.c src/profiler/c-library.h \
	src/profiler/chain-places.c src/profiler/chain-places.h \
	src/profiler/chains.c src/profiler/chains.h \
	src/profiler/code-unwinding.c src/profiler/code-unwinding.h \
	src/profiler/every-nth.c src/profiler/every-nth.h \
	src/profiler/frame-source.h \
	src/profiler/go-program.c src/profiler/go-program.h \
	src/profiler/goroutines.c \
	src/profiler/handover.c src/profiler/handover.h \
	src/profiler/join.c src/profiler/join.h \
	src/profiler/kills.c src/profiler/kills.h \
	src/profiler/victims.c src/profiler/victims.h \
	src/profiler/known-frames.c src/profiler/known-frames.h \
	src/profiler/known-stacks.c src/profiler/known-stacks.h \
	src/profiler/let-read.c \
	src/profiler/live-blocks.c src/profiler/live-blocks.h \
	src/profiler/lock-places.c src/profiler/lock-places.h \
	src/profiler/main.c \
	src/profiler/module-rows.c src/profiler/module-rows.h \
	src/profiler/newcomers.c src/profiler/newcomers.h \
	src/profiler/off-cpu.c src/profiler/off-cpu.h \
	src/profiler/off-cpu-internal.h \
	src/profiler/off-cpu-late.c \
	src/profiler/off-cpu-samples.c \
	src/profiler/off-cpu-spans.c \
	src/profiler/off-cpu-stacks.c \
	src/profiler/outside.c src/profiler/outside.h \
	src/profiler/process-maps.c src/profiler/process-maps.h \
	src/profiler/process-memory.c src/profiler/process-memory.h \
	src/profiler/process-runtimes.c src/profiler/process-runtimes.h \
	src/profiler/process-said.c src/profiler/process-said.h \
	src/profiler/process-size.c src/profiler/process-size.h \
	src/profiler/profiler.h \
	src/profiler/program-variable.c src/profiler/program-variable.h \
	src/profiler/readers.c src/profiler/readers.h \
	src/profiler/replay.c src/profiler/replay.h \
	src/profiler/residents.c src/profiler/residents.h \
	src/profiler/runtimes.c src/profiler/runtimes.h \
	src/profiler/setup.h \
	src/profiler/second-source.c src/profiler/second-source.h \
	src/profiler/spans.c \
	src/profiler/standing.c src/profiler/standing.h \
	src/profiler/switch-places.c \
	src/profiler/switch-stacks.c \
	src/profiler/switches.c src/profiler/switches.h \
	src/profiler/switches-internal.h \
	src/profiler/walk.c src/profiler/walk.h \
	src/profiler/wall-time.c src/profiler/wall-time.h \
	src/profiler/windows.c

check_PROGRAMS += tests/unit/test-code-unwinding
tests_unit_test_code_unwinding_SOURCES = tests/unit/test-code-unwinding.c tests/unit/test.h \
	tests/unit/jitdump-file.h
tests_unit_test_code_unwinding_LDADD = libprofiler.a libsymbolize.a libunwind.a libruntimes.a libutil.a \
	$(ELFUTILS_LIBS) $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-handover
tests_unit_test_handover_SOURCES = tests/unit/test-handover.c tests/unit/test.h
tests_unit_test_handover_LDADD = libprofiler.a libprocess.a libutil.a

check_PROGRAMS += tests/unit/test-newcomers
tests_unit_test_newcomers_SOURCES = tests/unit/test-newcomers.c tests/unit/test.h
tests_unit_test_newcomers_LDADD = libprofiler.a libutil.a

check_PROGRAMS += tests/unit/test-runtime-steps
tests_unit_test_runtime_steps_SOURCES = tests/unit/test-runtime-steps.c tests/runtimes/recording.h \
	tests/unit/recorded-file.h tests/unit/test.h
tests_unit_test_runtime_steps_LDADD = libprofiler.a libprofile.a libhost.a libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/unit/test-join
tests_unit_test_join_SOURCES = tests/unit/test-join.c tests/unit/test.h
tests_unit_test_join_LDADD = libprofiler.a libprofile.a libutil.a

check_PROGRAMS += tests/unit/test-attribute
tests_unit_test_attribute_SOURCES = tests/unit/test-attribute.c tests/unit/test.h
tests_unit_test_attribute_LDADD = libprofiler.a libperf-data.a libprocess.a libhost.a libsample.a \
	libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a libutil.a $(ELFUTILS_LIBS) $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-off-cpu
tests_unit_test_off_cpu_SOURCES = tests/unit/test-off-cpu.c tests/unit/test.h
tests_unit_test_off_cpu_LDADD = $(tests_unit_test_attribute_LDADD)

check_PROGRAMS += tests/unit/test-allocations
tests_unit_test_allocations_SOURCES = tests/unit/test-allocations.c tests/unit/test.h
tests_unit_test_allocations_LDADD = libprofiler.a libperf-data.a libprocess.a libhost.a libsample.a \
	libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a libutil.a $(ELFUTILS_LIBS) $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-lock-places
tests_unit_test_lock_places_SOURCES = tests/unit/test-lock-places.c tests/unit/test.h
tests_unit_test_lock_places_LDADD = libprofiler.a libperf-data.a libprocess.a libhost.a libsample.a \
	libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a libutil.a $(ELFUTILS_LIBS) $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-frame-source
tests_unit_test_frame_source_SOURCES = tests/unit/test-frame-source.c tests/unit/test.h
tests_unit_test_frame_source_LDADD = libprofiler.a libperf-data.a libprocess.a libhost.a libsample.a \
	libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a libutil.a $(ELFUTILS_LIBS) $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-process-said
tests_unit_test_process_said_SOURCES = tests/unit/test-process-said.c tests/unit/context-publisher.h tests/unit/test.h
tests_unit_test_process_said_LDADD = libprofiler.a libopener.a libperf-data.a libprocess.a libhost.a libsample.a \
	libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a libutil.a $(ELFUTILS_LIBS) $(SYMBOLIZE_LIBS)

check_PROGRAMS += tests/unit/test-program-variable
tests_unit_test_program_variable_SOURCES = tests/unit/test-program-variable.c tests/unit/compile.h tests/unit/test.h
tests_unit_test_program_variable_LDADD = libprofiler.a libruntimes.a $(symbolize_test_libs)

check_PROGRAMS += tests/unit/test-profiler
tests_unit_test_profiler_SOURCES = tests/unit/test-profiler.c tests/unit/test.h
tests_unit_test_profiler_LDADD = libprofiler.a libperf-data.a libprocess.a libhost.a libsample.a \
	libprofile.a libsymbolize.a libunwind.a libruntimes.a libproto.a libutil.a $(ELFUTILS_LIBS) $(SYMBOLIZE_LIBS)

EXTRA_DIST += tests/bench/offcpu.py tests/bench/allocations.py tests/bench/memory.py

check_PROGRAMS += tests/unit/test-go-program
tests_unit_test_go_program_SOURCES = tests/unit/test-go-program.c tests/unit/go-builds.h tests/unit/compile.h tests/unit/workshop.h tests/unit/test.h
tests_unit_test_go_program_LDADD = libprofiler.a libruntimes.a $(symbolize_test_libs)

# make bench-switches: what a context switch costs the profiler.
EXTRA_PROGRAMS += tests/bench/switch-pairs-bench
tests_bench_switch_pairs_bench_SOURCES = tests/bench/switch-pairs.c
tests_bench_switch_pairs_bench_LDADD = $(tests_unit_test_attribute_LDADD)
CLEANFILES += tests/bench/switch-pairs-bench$(EXEEXT)
.PHONY: bench-switches
bench-switches: tests/bench/switch-pairs-bench$(EXEEXT)
	for i in 1 2 3 4 5; do tests/bench/switch-pairs-bench$(EXEEXT); done

check_PROGRAMS += tests/unit/test-every-nth
tests_unit_test_every_nth_SOURCES = tests/unit/test-every-nth.c tests/unit/test.h
tests_unit_test_every_nth_LDADD = libprofiler.a -lm

check_PROGRAMS += tests/unit/test-block-proofs
tests_unit_test_block_proofs_SOURCES = tests/unit/test-block-proofs.c tests/unit/test.h
tests_unit_test_block_proofs_LDADD = libprofiler.a libutil.a

check_PROGRAMS += tests/unit/test-switches
tests_unit_test_switches_SOURCES = tests/unit/test-switches.c tests/unit/test.h
tests_unit_test_switches_LDADD = libprofiler.a libutil.a

check_PROGRAMS += tests/unit/test-standing
tests_unit_test_standing_SOURCES = tests/unit/test-standing.c tests/unit/test.h
tests_unit_test_standing_LDADD = libprofiler.a libutil.a

check_PROGRAMS += tests/unit/test-blocked-call
tests_unit_test_blocked_call_SOURCES = tests/unit/test-blocked-call.c tests/unit/test.h
tests_unit_test_blocked_call_LDADD = libprofiler.a libutil.a

check_PROGRAMS += tests/unit/test-live-blocks
tests_unit_test_live_blocks_SOURCES = tests/unit/test-live-blocks.c tests/unit/test.h
tests_unit_test_live_blocks_LDADD = libprofiler.a libprocess.a libutil.a
check_PROGRAMS += tests/unit/test-known-frames
tests_unit_test_known_frames_SOURCES = tests/unit/test-known-frames.c tests/unit/test.h
tests_unit_test_known_frames_LDADD = libprofiler.a libutil.a

check_PROGRAMS += tests/unit/test-readers
tests_unit_test_readers_SOURCES = tests/unit/test-readers.c tests/unit/test.h
tests_unit_test_readers_LDADD = libprofiler.a libprofile.a libprocess.a libsample.a libruntimes.a libutil.a

check_PROGRAMS += tests/unit/test-chains
tests_unit_test_chains_SOURCES = tests/unit/test-chains.c tests/unit/test.h
tests_unit_test_chains_LDADD = libprofiler.a libutil.a
