# The unit tests are listed by their rooms; here is what belongs to no room.
dist_check_SCRIPTS = tests/check-circles.sh tests/check-layers.sh
TESTS += $(dist_check_SCRIPTS)

include tests/fuzz/local.mk

# What unit tests alone link, which other CFLAGS than theirs may be for.
.PHONY: check-libraries
check-libraries: $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) $(check_LIBRARIES)

EXTRA_DIST += \
	tests/foreign/build.sh tests/foreign/host.py tests/foreign/native.py tests/foreign/packages.py tests/foreign/sysroot.sh \
	tests/kernels/bounded.c \
	tests/kernels/guest.sh \
	tests/kernels/interpreters.sh \
	tests/kernels/java.sh \
	tests/kernels/judge.py \
	tests/kernels/run.sh \
	tests/fresh.sh \
	tests/reproducible.sh \
	tests/links.mk \
	tests/run.sh \
	tests/select.sh \
	tests/oracle/cases.py \
	tests/oracle/expect.py \
	tests/oracle/folded.py \
	tests/oracle/generate.py \
	tests/oracle/model.py \
	tests/oracle/otlp.py \
	tests/oracle/otlpjson.py \
	tests/oracle/perfdata.py \
	tests/oracle/pprof.py \
	tests/oracle/real.py \
	tests/oracle/run.py \
	tests/oracle/speedscope.js \
	tests/oracle/viewers.py \
	tests/oracle/wire.py \
	tests/system/oracle.py \
	tests/system/alloc_model.py \
	tests/system/allocations.py \
	tests/system/preloaded.py \
	tests/system/badserver.py tests/system/protocols.py tests/system/route.py tests/system/sandbox.py tests/system/otelcol.py \
	tests/system/bombs.py \
	tests/system/backends.py \
	tests/system/build-backends.sh \
	tests/system/build-collector.sh tests/system/build-dashboards.sh tests/system/dashboards.go \
	tests/system/build-kubernetes.sh tests/system/cluster.py \
	tests/system/build-viewers.sh \
	tests/system/check.py \
	tests/system/checker.py \
	tests/system/churn.py \
	tests/system/collector.py \
	tests/system/completion.py \
	tests/system/confidence.py \
	tests/system/config.py \
	tests/system/cgroup_dirs.py \
	tests/system/cgroups.py \
	tests/system/captures.py \
	tests/system/containers.py \
	tests/system/copies.py \
	tests/system/ctl.py \
	tests/system/debug.py \
	tests/system/debugfiles.py \
	tests/system/debuginfod.py \
	tests/system/delivery.py \
	tests/system/expect.py \
	tests/system/fetch-deploy.sh tests/system/newer-go.sh \
	tests/system/fetch-promtool.sh \
	tests/system/grpc.py \
	tests/system/grpc_server.py \
	tests/system/hangs.py \
	tests/system/hardening.py \
	tests/system/hygiene.py \
	tests/system/inside.py \
	tests/system/bundle.py tests/system/fetch-chdb.sh tests/system/fleet.py tests/system/fetch-selinux.sh tests/system/fetch-alpine.sh tests/system/qcow2.py tests/system/image.py tests/system/policies.py tests/system/kubernetes.py tests/system/install.py tests/system/packages.py \
	tests/system/java.py \
	tests/system/cpython.py \
	tests/system/jitdump.py \
	tests/system/lines.py \
	tests/system/manual.py \
	tests/system/demangle.py \
	tests/system/names.py \
	tests/system/metrics.py \
	tests/system/noopen.py \
	tests/system/notify.py \
	tests/system/options.py \
	tests/system/otlp.py \
	tests/system/otlp_check.py \
	tests/system/outage.py \
	tests/system/perfdata.py \
	tests/system/pprof_file.py \
	tests/system/chained.py tests/system/php.py tests/system/ruby.py tests/system/fork_servers.py \
	tests/system/python.py \
	tests/system/node.py \
	tests/system/report.py \
	tests/system/outputs.py \
	tests/system/rig.py \
	tests/system/since.py \
	tests/system/sink.py \
	tests/system/plot.py tests/system/soak.py \
	tests/system/spdx.py \
	tests/system/spool.py tests/system/machine.py tests/system/unit.py tests/system/limit.py \
	tests/system/stack_size.py \
	tests/system/store.py \
	tests/system/supervision.py \
	tests/system/top.py \
	tests/system/locks.py \
	tests/system/offcpu.py \
	tests/system/oddhosts.py \
	tests/system/oldkernel.py \
	tests/system/unprivileged.py \
	tests/system/uprobes.py \
	tests/system/values.py \
	tests/system/wall.py \
	tests/system/workloads.py \
	tests/unit/test.h
EXTRA_DIST += \
	tests/workloads/Calls.java \
	tests/workloads/Hangs.java \
	tests/workloads/Polls.java \
	tests/workloads/Unloaded.java \
	tests/workloads/generated.py \
	tests/workloads/hangs.js tests/workloads/hangs.php tests/workloads/hangs.py tests/workloads/hangs.rb \
	tests/workloads/pyturns.py \
	tests/workloads/calls.js \
	tests/workloads/chains.py \
	tests/workloads/blip.c \
	tests/workloads/build.sh \
	tests/workloads/calls.py \
	tests/workloads/calls.php tests/workloads/calls-required.php \
	tests/workloads/calls.rb tests/workloads/calls-loaded.rb \
	tests/workloads/forks.php tests/workloads/forks.py tests/workloads/forks.rb \
	tests/workloads/small.js \
	tests/workloads/chain-stripped.expect \
	tests/workloads/chain.c \
	tests/workloads/chain.expect \
	tests/workloads/common.h \
	tests/workloads/clock.c \
	tests/workloads/counted.c \
	tests/workloads/cxx.cc \
	tests/workloads/deep.c \
	tests/workloads/cxx.expect \
	tests/workloads/frames.c \
	tests/workloads/frames.expect \
	tests/workloads/gopher.expect \
	tests/workloads/gopher.go \
	tests/workloads/growth.c \
	tests/workloads/hangs.c \
	tests/workloads/handler.c \
	tests/workloads/marked.c \
	tests/workloads/handler.expect \
	tests/workloads/heap.c \
	tests/workloads/host.c \
	tests/workloads/leak.c \
	tests/workloads/liar.c \
	tests/workloads/sleepers.c tests/workloads/switches.c tests/workloads/told.c \
	tests/workloads/host.expect \
	tests/workloads/jit.c \
	tests/workloads/jit.expect \
	tests/workloads/jitdump.c \
	tests/workloads/jsloop.expect \
	tests/workloads/jsloop.js \
	tests/workloads/lacking.c \
	tests/workloads/libc.c \
	tests/workloads/locks.c \
	tests/workloads/outer.c \
	tests/workloads/plugin.c \
	tests/workloads/pool.c \
	tests/workloads/pyloop.expect \
	tests/workloads/pyloop.py \
	tests/workloads/pylocks.py \
	tests/workloads/recurse.c \
	tests/workloads/recurse.expect \
	tests/workloads/registers.c \
	tests/workloads/registers.expect \
	tests/workloads/secret.c \
	tests/workloads/rusty.expect \
	tests/workloads/rusty.rs \
	tests/workloads/stages.c \
	tests/workloads/stages.expect \
	tests/workloads/tiny.c \
	tests/workloads/unwound.c \
	tests/workloads/vdso.c \
	tests/workloads/vdso.expect \
	tests/workloads/waits.c
EXTRA_DIST += tests/bench/agreement.py tests/bench/offcpu-peers.py tests/bench/offcpu-shares.py \
	tests/bench/pairs.c tests/bench/pauses.py tests/bench/readers.py tests/bench/shares.py tests/bench/spans.py \
	tests/bench/runtimes-peers.py tests/bench/runtimes.py tests/system/allocators.py \
	tests/system/attributes.py tests/system/events.py tests/system/goroutines.py \
	tests/system/hostile_interpreters.py tests/system/hostile_spans.py tests/system/instants.py \
	tests/system/interpreter_lives.py tests/system/interpreters.py tests/system/java_truth.py \
	tests/system/looks.py tests/system/losses.py tests/system/memory.py tests/system/native_frames.py \
	tests/system/runtime_waits.py tests/system/spans.py tests/system/tracers.py \
	tests/system/traces.py tests/system/unanswered.py tests/workloads/Heap.java \
	tests/workloads/OwnWaits.java tests/workloads/Traced.java tests/workloads/Virtual.java \
	tests/workloads/Waits.java tests/workloads/asgct.c tests/workloads/contexts.js \
	tests/workloads/fake-python.c \
	tests/workloads/heap.go tests/workloads/labelled.go tests/workloads/published.c \
	tests/workloads/pywaits.py tests/workloads/span-slot.c tests/workloads/spans-fast.c \
	tests/workloads/spans-hostile.c tests/workloads/spans-waits.c tests/workloads/spans.c \
	tests/workloads/traced.c tests/workloads/traced.js tests/workloads/traced.py \
	tests/workloads/waits.go tests/workloads/waits.js tests/workloads/waits.py

# The README's two commands on a bare Debian, as root; FRESH_TESTS="NAME..." for some tests only.
check-fresh:
	sh $(srcdir)/tests/fresh.sh $(FRESH_TESTS)

# The packages on Debian's releases, as root: python3 tests/system/packages.py has it shorter.
check-packages: perfwalk
	PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/packages.py $${PACKAGES_HOSTS:-bullseye bookworm trixie focal jammy noble}

# The packages and the bundle for other processors, built here and tried in a Debian of each under qemu-user, as root.
check-foreign-packages:
	for processor in $${FOREIGN:-aarch64}; do \
		python3 $(srcdir)/tests/foreign/packages.py $$processor || exit 1; \
	done
# Built by the compiler of another processor in a Debian of it under qemu-user, with the unit tests there, as root.
check-foreign-native:
	python3 $(srcdir)/tests/foreign/native.py aarch64
.PHONY: check-foreign-packages check-foreign-native

# All of it on a kernel of another processor, in an emulated machine.
check-aarch64-kernel check-riscv64-kernel:
	sh $(srcdir)/tests/kernels/run.sh --processor $(word 2,$(subst -, ,$@)) $(KERNELS)
.PHONY: check-aarch64-kernel check-riscv64-kernel

# Static analysers over the program: gcc, clang and cppcheck, or ANALYSE_TOOLS="..."; ANALYSE_FILES="..." for some only.
analyse: $(BUILT_SOURCES)
	python3 $(srcdir)/tests/analyse/run.py $(srcdir) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS)
EXTRA_DIST += tests/analyse/run.py tests/analyse/known.txt tests/analyse/bug.c

# Two whole builds of HEAD in different places and surroundings, compared byte by byte.
check-reproducible:
	sh $(srcdir)/tests/reproducible.sh

# As long as one likes, beside bombs, outages, kills and reloads; SOAK_OUT=DIRECTORY gets its numbers and charts.
check-soak: perfwalk
	SOAK_MINUTES=$${SOAK_MINUTES:-360} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/soak.py

.PHONY: analyse check-soak check-fresh check-reproducible check-packages check-outage check-spans bench-offcpu check-backends check-kubernetes check-oracle check-trap check-unit
# Ten minutes without a receiver; make check has none of it, tests/run.sh twenty seconds.
check-outage: perfwalk
	OUTAGE_SECONDS=$${OUTAGE_SECONDS:-600} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/outage.py

# Longer captures: some 30,000 samples in spans, and as many of goroutines; with a Collector; and 20,000 of each tracer.
check-spans: perfwalk
	SPANS_LENGTH=$${SPANS_LENGTH:-3} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/spans.py
	SPANS_LENGTH=$${SPANS_LENGTH:-3} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/goroutines.py
	SPANS_LENGTH=$${SPANS_LENGTH:-3} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/traces.py
	SPANS_LENGTH=$${TRACERS_LENGTH:-40} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/tracers.py

# What off-CPU time costs a context switch, and what the daemon does instead under a limit: the figures of
# docs/figures.md, which say something on a quiet host. OFFCPU_PAIRS=60 takes longer.
bench-offcpu: perfwalk
	PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/bench/offcpu.py --pairs $${OFFCPU_PAIRS:-20}
	PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/bench/offcpu.py --limit $${OFFCPU_LIMIT:-1%}

# All system tests, in which a system call that a filter refuses is named; TRAP_TESTS="NAME..." for some tests only.
check-trap:
	PERFWALK_SECCOMP=trap sh $(srcdir)/tests/run.sh $${TRAP_TESTS:---system}

# Those with a daemon, which systemd runs by the unit in a machine that it has booted (tests/system/inside.py), first as it
# is and then without root; TEST_UNITS="perfwalk.service old-kernel.conf", UNIT_TESTS="NAME..." for some of them only.
check-unit:
	for unit in $${TEST_UNITS:-perfwalk.service rootless.conf}; do \
		TEST_UNIT=$$unit sh $(srcdir)/tests/run.sh $${UNIT_TESTS:-$(UNIT_TESTS)} || exit 1; \
	done
UNIT_TESTS = delivery ctl metrics supervision spool outage cgroups store protocols grpc events limit losses stack_size memory \
	badserver route debuginfod demangle manual bombs churn hostile looks goroutines preloaded allocators \
	attributes python sandbox locks spans offcpu traces node
# Tests with a daemon that the unit does not run (the test hygiene compares both lists with the tests). noopen, notify,
# oldkernel and unanswered start it in ways that a service is not started in, or need what a machine lacks; containers cannot
# stack podman's overlays there; captures prints a warning there that it does not expect, of the machine's pid namespace, and
# it, fleet and collector hardly use the daemon; backends and soak have targets of their own.
WITHOUT_UNIT = noopen notify oldkernel unanswered containers captures fleet collector backends soak

# Servers of others, which it takes minutes to build.
check-backends: perfwalk
	PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/backends.py

# The chart in a Kubernetes of one node, which is built first, as root.
check-kubernetes: perfwalk
	PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/cluster.py

# Generated files against the model of tests/oracle, as long as one likes; a seed repeats a run.
check-oracle: perfwalk
	ORACLE_SECONDS=$${ORACLE_SECONDS:-600} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/oracle.py

# Chains of calls of Java, JavaScript, PHP, Ruby and Python programs as they are and as perfwalk sees them, longer than the run of
# all tests does it; JAVA="/usr/lib/jvm/a/bin/java /usr/lib/jvm/b/bin/java", NODE="PATH...", PYTHON="PATH...", PHP="COMMAND..." and
# RUBY="COMMAND..." for several versions.
.PHONY: check-runtimes
check-runtimes: perfwalk
	PYTHON_STOPS=$${PYTHON_STOPS:-500} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/cpython.py
	JAVA_SECONDS=$${JAVA_SECONDS:-20} PERFWALK=$(abs_builddir)/perfwalk python3 $(srcdir)/tests/system/java.py
	JAVA_SAMPLES=$${JAVA_SAMPLES:-20000} PERFWALK=$(abs_builddir)/perfwalk \
		python3 $(srcdir)/tests/system/java_truth.py
	NODE_SECONDS=$${NODE_SECONDS:-10} NODE_RATE=397 PERFWALK=$(abs_builddir)/perfwalk \
		python3 $(srcdir)/tests/system/node.py
	PHP_SECONDS=$${PHP_SECONDS:-10} PHP_RATE=997 PERFWALK=$(abs_builddir)/perfwalk \
		python3 $(srcdir)/tests/system/php.py
	RUBY_SECONDS=$${RUBY_SECONDS:-10} RUBY_RATE=997 PERFWALK=$(abs_builddir)/perfwalk \
		python3 $(srcdir)/tests/system/ruby.py
	PYTHON_SECONDS=$${PYTHON_SECONDS:-11} PYTHON_RATE=997 PERFWALK=$(abs_builddir)/perfwalk \
		python3 $(srcdir)/tests/system/python.py
	NESTED_SECONDS=$${NESTED_SECONDS:-21} NESTED_RATE=997 PERFWALK=$(abs_builddir)/perfwalk \
		python3 $(srcdir)/tests/system/interpreter_lives.py
