# The fuzz targets over what is kept for them; those of other rooms are in unwind/, symbolize/, src/import/ and
# src/perf-data/. tests/fuzz/run.sh makes fuzzers of all.
EXTRA_DIST += tests/fuzz/run.sh tests/fuzz/seeds-programs.sh tests/fuzz/seeds-symbols.sh tests/fuzz/corpus-symbols

check_PROGRAMS += tests/fuzz/replay-symbols
tests_fuzz_replay_symbols_SOURCES = tests/fuzz/fuzz-symbols.c tests/fuzz/elf-parts.h tests/fuzz/replay.h tests/unit/lookup.h
tests_fuzz_replay_symbols_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-symbols"'
tests_fuzz_replay_symbols_LDADD = $(symbolize_test_libs)

check_PROGRAMS += tests/fuzz/replay-demangle
tests_fuzz_replay_demangle_SOURCES = tests/fuzz/fuzz-demangle.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_demangle_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-demangle"'
tests_fuzz_replay_demangle_LDADD = $(symbolize_test_libs)
EXTRA_DIST += tests/fuzz/corpus-demangle

check_PROGRAMS += tests/fuzz/replay-kallsyms
tests_fuzz_replay_kallsyms_SOURCES = tests/fuzz/fuzz-kallsyms.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_kallsyms_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-kallsyms"'
tests_fuzz_replay_kallsyms_LDADD = $(symbolize_test_libs)
EXTRA_DIST += tests/fuzz/corpus-kallsyms

check_PROGRAMS += tests/fuzz/replay-perf-map
tests_fuzz_replay_perf_map_SOURCES = tests/fuzz/fuzz-perf-map.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_perf_map_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-perf-map"'
tests_fuzz_replay_perf_map_LDADD = $(symbolize_test_libs)
EXTRA_DIST += tests/fuzz/corpus-perf-map

check_PROGRAMS += tests/fuzz/replay-host-text
tests_fuzz_replay_host_text_SOURCES = tests/fuzz/fuzz-host-text.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_host_text_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-host-text"'
tests_fuzz_replay_host_text_LDADD = libprofiler.a libhost.a libopener.a libprocess.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-host-text

check_PROGRAMS += tests/fuzz/replay-context
tests_fuzz_replay_context_SOURCES = tests/fuzz/fuzz-context.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_context_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-context"'
tests_fuzz_replay_context_LDADD = libruntimes.a libproto.a libproto-gen.a libhost.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-context

check_PROGRAMS += tests/fuzz/replay-records
tests_fuzz_replay_records_SOURCES = tests/fuzz/fuzz-records.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_records_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-records"'
tests_fuzz_replay_records_LDADD = libsample.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-records

check_PROGRAMS += tests/fuzz/replay-replies
tests_fuzz_replay_replies_SOURCES = tests/fuzz/fuzz-replies.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_replies_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-replies"'
tests_fuzz_replay_replies_LDADD = libexporter.a libproto.a libproto-gen.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-replies

check_PROGRAMS += tests/fuzz/replay-rewrite
tests_fuzz_replay_rewrite_SOURCES = tests/fuzz/fuzz-rewrite.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_rewrite_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-rewrite"'
tests_fuzz_replay_rewrite_LDADD = libproto.a libproto-gen.a libutil.a $(PROTOBUF_C_LIBS) $(ZLIB_LIBS) $(NETTLE_LIBS)
EXTRA_DIST += tests/fuzz/corpus-rewrite

check_PROGRAMS += tests/fuzz/replay-spool
tests_fuzz_replay_spool_SOURCES = tests/fuzz/fuzz-spool.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_spool_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-spool"'
tests_fuzz_replay_spool_LDADD = libexporter.a libstore.a libutil.a $(ZLIB_LIBS) $(ZSTD_LIBS) $(LIBDEFLATE_LIBS)
EXTRA_DIST += tests/fuzz/corpus-spool

check_PROGRAMS += tests/fuzz/replay-window
tests_fuzz_replay_window_SOURCES = tests/fuzz/fuzz-window.c tests/fuzz/input.h tests/fuzz/replay.h $(render_synthetic)
tests_fuzz_replay_window_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-window"'
tests_fuzz_replay_window_LDADD = libscreen.a $(render_libs)
EXTRA_DIST += tests/fuzz/corpus-window

check_PROGRAMS += tests/fuzz/replay-waits
tests_fuzz_replay_waits_SOURCES = tests/fuzz/fuzz-waits.c tests/fuzz/input.h tests/fuzz/replay.h tests/unit/waits-model.h
tests_fuzz_replay_waits_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-waits"'
tests_fuzz_replay_waits_LDADD = $(render_libs)
EXTRA_DIST += tests/fuzz/corpus-waits

check_PROGRAMS += tests/fuzz/replay-config
tests_fuzz_replay_config_SOURCES = tests/fuzz/fuzz-config.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_config_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-config"'
tests_fuzz_replay_config_LDADD = libconfig.a libutil.a $(INIH_LIBS) $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-config

check_PROGRAMS += tests/fuzz/replay-control
tests_fuzz_replay_control_SOURCES = tests/fuzz/fuzz-control.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_control_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-control"'
tests_fuzz_replay_control_LDADD = libbroker.a libopener.a libprocess.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-control

check_PROGRAMS += tests/fuzz/replay-hotspot
tests_fuzz_replay_hotspot_SOURCES = tests/fuzz/fuzz-hotspot.c tests/fuzz/recording-target.h tests/fuzz/input.h tests/fuzz/replay.h \
	tests/runtimes/recorded-hotspot.h tests/runtimes/recording.h
tests_fuzz_replay_hotspot_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/data/runtimes"'
tests_fuzz_replay_hotspot_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/fuzz/replay-v8
tests_fuzz_replay_v8_SOURCES = tests/fuzz/fuzz-v8.c tests/fuzz/recording-target.h tests/fuzz/input.h tests/fuzz/replay.h \
	tests/runtimes/recorded-v8.h tests/runtimes/recording.h
tests_fuzz_replay_v8_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/data/v8"'
tests_fuzz_replay_v8_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/fuzz/replay-cpython
tests_fuzz_replay_cpython_SOURCES = $(tests_fuzz_replay_interp_SOURCES)
tests_fuzz_replay_cpython_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/data/cpython"'
tests_fuzz_replay_cpython_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/fuzz/replay-interp
tests_fuzz_replay_interp_SOURCES = tests/fuzz/fuzz-interp.c tests/fuzz/recording-target.h tests/fuzz/input.h tests/fuzz/replay.h \
	tests/runtimes/recorded-chain.h tests/runtimes/recording.h
tests_fuzz_replay_interp_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/data/interp"'
tests_fuzz_replay_interp_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)

check_PROGRAMS += tests/fuzz/replay-http
tests_fuzz_replay_http_SOURCES = tests/fuzz/fuzz-http.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_http_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-http"'
tests_fuzz_replay_http_LDADD = libhttp.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-http

check_PROGRAMS += tests/fuzz/replay-messages
tests_fuzz_replay_messages_SOURCES = tests/fuzz/fuzz-messages.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_messages_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-messages"'
tests_fuzz_replay_messages_LDADD = libbroker.a libopener.a libprofiler.a libprocess.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-messages

check_PROGRAMS += tests/fuzz/replay-readers
tests_fuzz_replay_readers_SOURCES = tests/fuzz/fuzz-readers.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_readers_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-readers"'
tests_fuzz_replay_readers_LDADD = libprofiler.a libprofile.a libprocess.a libsample.a libruntimes.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-readers

check_PROGRAMS += tests/fuzz/replay-programs
tests_fuzz_replay_programs_SOURCES = tests/fuzz/fuzz-programs.c tests/fuzz/elf-parts.h tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_programs_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-programs"'
tests_fuzz_replay_programs_LDADD = libprofiler.a libruntimes.a $(symbolize_test_libs)
EXTRA_DIST += tests/fuzz/corpus-programs

check_PROGRAMS += tests/fuzz/replay-threads
tests_fuzz_replay_threads_SOURCES = tests/fuzz/fuzz-threads.c tests/fuzz/elf-parts.h tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_threads_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-threads"'
tests_fuzz_replay_threads_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-threads

check_PROGRAMS += tests/fuzz/replay-strikes
tests_fuzz_replay_strikes_SOURCES = tests/fuzz/fuzz-strikes.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_strikes_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-strikes"'
tests_fuzz_replay_strikes_LDADD = libbroker.a libprocess.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-strikes

# make fuzz: a minute for each target; make fuzz-long: two hours. FUZZ_TARGETS="NAME..." for some only.
.PHONY: fuzz fuzz-long fuzz-programs
fuzz:
	$(SHELL) $(srcdir)/tests/fuzz/run.sh $(srcdir) $${FUZZ_SECONDS:-60} $${FUZZ_TARGETS:-}
fuzz-long:
	$(SHELL) $(srcdir)/tests/fuzz/run.sh $(srcdir) $${FUZZ_SECONDS:-7200} $${FUZZ_TARGETS:-}
fuzz-programs:
	$(MAKE) $(AM_MAKEFLAGS) $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) $(FUZZ_PROGRAMS)

# 2,000 mutants of ELF files through a daemon; make check has none of it, tests/run.sh 100.
.PHONY: check-hostile
check-hostile: perfwalk
	HOSTILE_FILES=$${HOSTILE_FILES:-2000} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/hostile.py
EXTRA_DIST += tests/system/hostile.py

check_PROGRAMS += tests/fuzz/replay-marks
tests_fuzz_replay_marks_SOURCES = tests/fuzz/fuzz-marks.c tests/fuzz/input.h tests/fuzz/replay.h
tests_fuzz_replay_marks_CPPFLAGS = $(AM_CPPFLAGS) -DFUZZ_REPLAY='"$(srcdir)/tests/fuzz/corpus-marks"'
tests_fuzz_replay_marks_LDADD = libruntimes.a libutil.a $(ZLIB_LIBS)
EXTRA_DIST += tests/fuzz/corpus-marks
