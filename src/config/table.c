/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key there is. Loading, --print-config, the default config file and the check of
 * perfwalk.conf(5) all read this table, so a key is added here, in struct config and in the manual.
 */
#include <string.h>

#include "src/config/table.h"
#include "util/clock.h"
#include "util/runtime-rows.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define MIN (60 * NSEC_PER_SEC)
#define DAY (24 * 60 * MIN)

#define AT(field)	 offsetof(struct config, field)
#define AT_EXPORT(field) offsetof(struct config_export, field)
#define AT_EVENT(field)	 offsetof(struct config_event, field)

static const struct config_section sections[] = {
	{.name = "profiler", .help = "What is sampled, and how often."},
	{.name = "off_cpu",
	 .help = "How long threads are blocked, where, and what they wait for, in addition "
		 "to what they do on the CPU."},
	{.name = "alloc",
	 .help = "What programs allocate with malloc and its kin, by call path, and what "
		 "they have in use."},
	{.name = "filter",
	 .help = "What is sampled on the host. A sample is kept if it matches at least one "
		 "item of every include list that is set, and no item of any exclude list. "
		 "Excluded samples are counted and cost little: their stacks are not "
		 "walked."},
	{.name = "symbolizer", .help = "How detailed the names of frames are."},
	{.name = "debuginfod",
	 .help = "Missing debug files are fetched from debuginfod servers, which learn the "
		 "build ids of the programs that run here. Nothing waits for a download: "
		 "names and lines improve once the files are there."},
	{.name = "limits",
	 .help = "What perfwalk may take from the host. Anything beyond a limit is left "
		 "out and counted."},
	{.name = "process", .help = "The daemon itself."},
	{.name = "spool",
	 .help = "Profiles that cannot be sent are kept on disk and sent later, also after "
		 "a restart. Nothing is written as long as the destinations accept their "
		 "profiles."},
	{.name = "store",
	 .help = "Profiles kept on this host for perfwalk report --last, as OTLP files. "
		 "Without any [export:NAME] section they are always kept."},
	{.name = "metrics",
	 .help = "The state of perfwalk itself, over HTTP: /metrics for Prometheus, "
		 "/healthz, /readyz, and /debug/pprof/profile?seconds=30 for a pprof "
		 "profile of the whole host, as go tool pprof, Parca and Alloy fetch it. "
		 "Needs libmicrohttpd."},
	{.name = CONFIG_SECTION_RESOURCE,
	 .help = "Attributes added to everything that is exported, one on each line: "
		 "attribute = value. service.name gives all processes of the host one "
		 "service instead of one for each program."},
	{.name = "attributes",
	 .help = "Which resource attributes are exported: those that perfwalk finds out, "
		 "and those that processes publish in their OpenTelemetry process context "
		 "or set in OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. service.name "
		 "and the attributes of [resource] are always exported. perfwalk.conf(5) "
		 "says which source wins."},
	{.name = "log", .help = "Messages on standard error (under systemd, in the journal)."},
	{.name = CONFIG_SECTION_EVENT,
	 .help = "An event that is sampled besides CPU time: page-faults, context-switches, "
		 "cache-misses, a tracepoint like sched:sched_process_exec; "
		 "perfwalk-record(1) names them all. There may be several such sections, "
		 "each with its own event. Profiles have a sample type for each. Without "
		 "such a section only CPU time is sampled.",
	 .what = "an event",
	 .example = "page-faults"},
	{.name = CONFIG_SECTION_EXPORT,
	 .help = "A destination. There may be several such sections, each with its own "
		 "name. Each destination has its own queue and retries, so one that is down "
		 "does not delay the others.",
	 .what = "a destination",
	 .example = "otel"},
};

static const struct config_key keys[] = {
	{"profiler", "samples_per_second", CONFIG_COUNT, AT(samples_per_second), .value = "19",
	 .min = 1, .max = 1000,
	 .help = "Samples per second on each busy CPU. One in step with the kernel's ticks, as "
		 "numbers that divide 1000 often are, becomes the next lower one that is not."},
	{"profiler", "reporter_interval", CONFIG_DURATION, AT(reporter_interval_ns), .value = "10s",
	 .min = NSEC_PER_SEC, .max = 60 * MIN,
	 .help = "Length of one profile: a profile is exported at the end of each interval."},
	{"profiler", "stack_size", CONFIG_AUTO_BYTES, AT(stack_size_bytes), .value = "auto",
	 .min = KIB, .max = 65528, .multiple = 8,
	 .help = "Bytes of the user stack copied with each sample. Frames beyond the copy are "
		 "reported as truncated. The kernel copies at most 65528. auto starts with 16K and "
		 "takes more while that completes truncated stacks and ring_size has room. Stacks "
		 "larger than 65528 continue with frame pointers where these are proven right."},
	{"profiler", "ring_size", CONFIG_BYTES, AT(ring_size_bytes), .value = "2M",
	 .min = 128 * KIB, .max = GIB, .power_of_two = true,
	 .help = "Bytes of the buffer between the kernel and perfwalk, for each CPU. Samples that "
		 "find it full are lost and counted."},
	{"profiler", "kernel_stacks", CONFIG_BOOL, AT(kernel_stacks), .value = "yes",
	 .help = "Also record the kernel's part of each stack, if the kernel allows it."},
	{"profiler", "interpreters", CONFIG_BOOL, AT(interpreters), .value = "yes",
	 .help = "Read the stacks of " RUNTIME_NAMES " programs and show "
		 "their functions between the native ones. For " RUNTIME_NAMES_WITH_CHAIN ", a "
		 "process on each CPU reads them at the moment of each sample, as long as "
		 "such programs run."},
	{"profiler", "native_frames", CONFIG_BOOL, AT(native_frames), .value = "yes",
	 .help = "Keep the interpreter's own native functions in stacks that have its "
		 "frames. With no, such a stack has only the program's functions and the "
		 "native functions of other libraries."},
	{"profiler", "memory_growth", CONFIG_BOOL, AT(memory_growth), .value = "no",
	 .help = "Also sample where memory grows: every 61st page that a program touches "
		 "for the first time, with its stack. The profiles count bytes. A section "
		 "[event:memory_growth] does the same and can set another period. The local "
		 "store then also keeps how much memory the largest processes have, every ten "
		 "seconds and at the end of each interval, and which processes the kernel "
		 "killed for want of memory. perfwalk-record(1) explains under --memory what "
		 "counts."},
	{"profiler", "max_frames", CONFIG_COUNT, AT(max_frames), .value = "1024", .min = 16,
	 .max = 16384,
	 .help = "The maximum number of frames in a stack. Further frames are reported as "
		 "truncated."},

	{"off_cpu", "enabled", CONFIG_BOOL, AT(off_cpu), .value = "no",
	 .help = "Also export how long threads are blocked, as profiles of the type "
		 "off_cpu in nanoseconds. The kernel records every context switch, which "
		 "costs a third of a microsecond each, and up to 200 stacks a second on "
		 "each CPU, or 50 while it knows where nearly all short blocks are. A block that "
		 "spans several intervals is split between them. If "
		 "all switches would cost more than half of [limits] cpu, they are "
		 "followed only part of the time; the log, ctl status and the profiles say "
		 "so. perfwalk-record(1) explains under --off-cpu what counts. Without "
		 "tracefs (/sys/kernel/tracing) fewer blocks have a stack, and locks and "
		 "[event:context-switches] do not go with it. Cannot be combined with include_cpus "
		 "and exclude_cpus. Takes two of the six events that there may be."},

	{"off_cpu", "locks", CONFIG_BOOL, AT(off_cpu_locks), .value = "no",
	 .help = "Also report which locks threads wait for, below [wait: lock], and export "
		 "the stacks that release them, as profiles of the type lock_wakeups. This "
		 "takes one more event."},
	{"off_cpu", "wall", CONFIG_BOOL, AT(off_cpu_wall), .value = "no",
	 .help = "Also export all time of threads (on a CPU, waiting for a CPU and "
		 "blocked), as profiles of the type wall in nanoseconds. These repeat the "
		 "stacks of CPU and off-CPU time, so payloads double in size."},
	{"off_cpu", "idle", CONFIG_BOOL, AT(off_cpu_idle), .value = "no",
	 .help = "Also export the time of idle threads, below [idle]. A thread is idle if "
		 "it waits for work in one place for more than 90% of the interval and "
		 "wakes less than once a second. Otherwise only the sum of this time is "
		 "reported (perfwalk.threads_idle_us)."},

	{"alloc", "enabled", CONFIG_BOOL, AT(alloc), .value = "no",
	 .help = "Also export what programs allocate and what they have in use, as "
		 "profiles of the types alloc_space, alloc_objects, inuse_space and "
		 "inuse_objects. This covers Go programs, Java VMs, and all processes that "
		 "were started with libperfwalk-alloc.so (or a copy of it) in LD_PRELOAD, "
		 "also in containers. perfwalk.conf(5) says how to preload it. Takes two "
		 "of the six events that there may be."},
	{"alloc", "budget", CONFIG_COUNT, AT(alloc_budget), .value = "1000", .min = 1,
	 .max = 100000,
	 .help = "The maximum number of sampled blocks per second on each CPU. When it is "
		 "used up, perfwalk sees no allocations for the rest of that second; the "
		 "log and ctl status say so."},

	{"filter", "include_comm", CONFIG_GLOBS, AT(include[CONFIG_FILTER_COMM]),
	 .help = "Names of processes or threads; * ? [...] work as in the shell. Commas separate "
		 "the items of all lists."},
	{"filter", "exclude_comm", CONFIG_GLOBS, AT(exclude[CONFIG_FILTER_COMM]),
	 .help = "The same, for samples to exclude."},
	{"filter", "include_user", CONFIG_USERS, AT(include[CONFIG_FILTER_USER]),
	 .help = "Names or numbers of users, compared with the effective user of a "
		 "process. Names are looked up when the config is read. If a process ends "
		 "before perfwalk can look up its user, its parent's user counts."},
	{"filter", "exclude_user", CONFIG_USERS, AT(exclude[CONFIG_FILTER_USER]),
	 .help = "The same, for samples to exclude."},
	{"filter", "include_unit", CONFIG_GLOBS, AT(include[CONFIG_FILTER_UNIT]),
	 .help = "systemd services, scopes and slices; * ? [...] work. A name without a suffix "
		 "means .service."},
	{"filter", "exclude_unit", CONFIG_GLOBS, AT(exclude[CONFIG_FILTER_UNIT]),
	 .help = "The same, for samples to exclude."},
	{"filter", "include_container", CONFIG_CONTAINERS, AT(include[CONFIG_FILTER_CONTAINER]),
	 .help = "Container ids or names, or how they begin; in Kubernetes "
		 "NAMESPACE/POD/CONTAINER, or the pod or the container alone. perfwalk "
		 "list containers shows them."},
	{"filter", "exclude_container", CONFIG_CONTAINERS, AT(exclude[CONFIG_FILTER_CONTAINER]),
	 .help = "The same, for samples to exclude."},
	{"filter", "include_cgroup", CONFIG_CGROUPS, AT(include[CONFIG_FILTER_CGROUP]),
	 .help = "Control groups, including all groups below them: /system.slice/nginx.service, "
		 "with or without /sys/fs/cgroup before it."},
	{"filter", "exclude_cgroup", CONFIG_CGROUPS, AT(exclude[CONFIG_FILTER_CGROUP]),
	 .help = "The same, for samples to exclude."},
	{"filter", "include_service", CONFIG_GLOBS, AT(include[CONFIG_FILTER_SERVICE]),
	 .help = "Names of services, as in service.name: the name that a process "
		 "publishes, otherwise the name of its executable; * ? [...] work."},
	{"filter", "exclude_service", CONFIG_GLOBS, AT(exclude[CONFIG_FILTER_SERVICE]),
	 .help = "The same, for samples to exclude."},
	{"filter", "include_cpus", CONFIG_CPUS, AT(include[CONFIG_FILTER_CPUS]),
	 .help = "Numbers and ranges of CPUs: 0-3,8. perfwalk opens no events on other "
		 "CPUs."},
	{"filter", "exclude_cpus", CONFIG_CPUS, AT(exclude[CONFIG_FILTER_CPUS]),
	 .help = "CPUs to exclude, in the same form."},

	{"symbolizer", "lines", CONFIG_BOOL, AT(source_lines), .value = "no",
	 .help = "Source file and line of each frame, if a program or its separate debug "
		 "file has debugging information. Each new address then costs about 20 "
		 "microseconds, and a large file up to 16M of the memory for symbols; "
		 "files without debugging information cost nothing. On a busy host with "
		 "debugging information, lines took 5 microseconds a sample and 25M. "
		 "Captures always have lines."},
	{"symbolizer", "inline", CONFIG_BOOL, AT(inline_frames), .value = "no",
	 .help = "Show inlined functions as frames of their own, using the same "
		 "information."},
	{"symbolizer", "demangle", CONFIG_DEMANGLE, AT(demangle), .value = "full",
	 .help = "How to show names of C++, Rust and D. full: with parameters and template "
		 "arguments, as in std::vector<int>::push_back(int&&). simple: without "
		 "them, as in std::vector::push_back. none: as the linker knows them. OTLP "
		 "and pprof always have the linker's name as well."},

	{"debuginfod", "urls", CONFIG_URLS, AT(debuginfod_urls),
	 .help = "Base URLs of the servers, separated by blanks, in the order in which to "
		 "ask them. There are none by default. DEBUGINFOD_URLS in the environment "
		 "takes precedence."},
	{"debuginfod", "cache_path", CONFIG_PATH, AT(debuginfod_cache_path),
	 .help = "Directory for fetched files, and for nothing else. perfwalk creates it; "
		 "it belongs to the user that perfwalk runs as. The default is "
		 "/var/cache/perfwalk/debuginfod for root, and perfwalk/debuginfod below "
		 "~/.cache for other users, or below XDG_CACHE_HOME if that is set."},
	{"debuginfod", "cache_size", CONFIG_BYTES, AT(debuginfod_cache_bytes), .value = "1G",
	 .min = MIB, .max = 1024 * GIB,
	 .help = "Maximum size of the cache. When it is full, the least recently used "
		 "files are removed."},
	{"debuginfod", "max_file_size", CONFIG_BYTES, AT(debuginfod_max_file_bytes),
	 .value = "256M", .min = KIB, .max = 4 * GIB, .help = "The largest file to fetch."},
	{"debuginfod", "timeout", CONFIG_DURATION, AT(debuginfod_timeout_ns), .value = "2m",
	 .min = NSEC_PER_SEC, .max = 60 * MIN, .help = "How long one download may take."},

	{"limits", "cpu", CONFIG_SHARE, AT(cpu_ppm), .value = "2%", .min = 100, .max = 1000000,
	 .help = "CPU time of all processes of perfwalk together, as a share of all CPUs "
		 "of the host. If they need more for a minute, the daemon reduces its work "
		 "one step at a time: it gives up source lines, inlined functions, names "
		 "of functions that are rarely seen, large stack copies, then half, three "
		 "quarters and seven eighths of the samples. It takes the steps back when "
		 "there is room again. The log, perfwalk ctl status, the metrics and the "
		 "profiles say what is reduced. Samples are weighted by their rate, so "
		 "sums stay right. 100% means no limit. Captures and perfwalk top ignore "
		 "it."},
	{"limits", "window_memory", CONFIG_BYTES, AT(window_memory_bytes), .value = "32M",
	 .min = MIB, .max = 4 * GIB, .help = "Memory for the stacks and samples of one interval."},
	{"limits", "unwind_rows", CONFIG_BYTES, AT(unwind_rows_bytes), .value = "8M", .min = MIB,
	 .max = 4 * GIB, .help = "Memory for compiled unwind rules, shared by all processes."},
	{"limits", "symbols", CONFIG_BYTES, AT(symbols_bytes), .value = "32M", .min = MIB,
	 .max = 4 * GIB,
	 .help = "Memory for symbol tables and source lines kept from one interval to the next, "
		 "and as much again for names of code that processes compile while they run. "
		 "Tables that do not fit are read from their files again when needed."},
	{"limits", "symbolizer_memory", CONFIG_BYTES, AT(symbolizer_memory_bytes), .value = "1G",
	 .min = 64 * MIB, .max = 64 * GIB,
	 .help = "Address space of the process that reads debugging information; three "
		 "eighths of it are for data. This limit stops hostile files."},
	{"limits", "symbolizer_file_timeout", CONFIG_DURATION, AT(symbolizer_file_timeout_ns),
	 .value = "3s", .min = 100 * NSEC_PER_MSEC, .max = 5 * MIN,
	 .help = "How much CPU time one file may take, or how long perfwalk waits for it. "
		 "A file that exceeds this is set aside for an hour, then for twice as "
		 "long each time. Meanwhile its frames are exported as addresses."},
	{"limits", "max_processes", CONFIG_COUNT, AT(max_processes), .value = "65536", .min = 16,
	 .max = 4194304, .help = "The maximum number of processes tracked at a time."},
	{"limits", "max_open_files", CONFIG_COUNT, AT(max_open_files), .value = "1024", .min = 16,
	 .max = 1048576,
	 .help = "The maximum number of executables and libraries held open for unwinding "
		 "and naming. Holding them open keeps the names of deleted or upgraded "
		 "programs."},

	{"process", "user", CONFIG_WORD, AT(user), .value = "perfwalk",
	 .help = "The user that all processes except the small privileged one run as. If "
		 "there is no such user, perfwalk uses nobody, logs a warning, and sends "
		 "no credentials."},
	{"process", "network_user", CONFIG_WORD, AT(network_user), .value = "perfwalk-net",
	 .help = "The user that the processes with network access run as. They send "
		 "profiles, fetch debug files, own the spool, the store and the cache, and "
		 "read certificates and keys. If there is no such user, perfwalk uses the "
		 "user above; once it exists, perfwalk gives it the directories and files "
		 "of that user."},
	{"process", "seccomp", CONFIG_SECCOMP, AT(seccomp), .value = "errno",
	 .help = "Each of these processes may make only the system calls that its work "
		 "needs; the kernel enforces this, and perfwalk ctl status shows it. "
		 "errno: other calls fail. kill: other calls end the process, which is "
		 "then restarted. no: no limit, for a host where a library needs other "
		 "calls. PERFWALK_SECCOMP in the environment takes precedence."},
	{"process", "landlock", CONFIG_BOOL, AT(landlock), .value = "yes",
	 .help = "Each of these processes may open only the files that its work needs; the "
		 "kernel enforces this with Landlock (Linux 5.13). Processes with network "
		 "access may read what the resolver and TLS need (/etc, /usr and the like) "
		 "and the certificates and keys named here, and use their own directories; "
		 "the others may open no files. From Linux 6.7 on, processes with network "
		 "access may connect by TCP only to the ports of the servers and proxies "
		 "named here and in the environment, and to port 53 (DNS)."},

	{"process", "control", CONFIG_PATH, AT(control), .value = "/run/perfwalk/control",
	 .help = "The socket of perfwalk ctl; perfwalk creates its directory. Root, the "
		 "user that started the daemon and the group of the user above may use it. "
		 "A second daemon needs a socket of its own."},

	{"spool", "enabled", CONFIG_BOOL, AT(spool_enabled), .value = "yes",
	 .help = "Without the spool, unsent profiles are kept in memory only, and lost "
		 "when the daemon ends."},
	{"spool", "path", CONFIG_PATH, AT(spool_path),
	 .help = "Directory for the spool, and for nothing else. perfwalk creates it; it belongs "
		 "to the user that perfwalk runs as. The default is /var/lib/perfwalk/spool."},
	{"spool", "max_bytes", CONFIG_BYTES, AT(spool_max_bytes), .value = "256M", .min = MIB,
	 .max = 1024 * GIB,
	 .help = "Maximum size of the spool. When it is full, the oldest profiles are "
		 "dropped and counted."},
	{"spool", "max_age", CONFIG_DURATION, AT(spool_max_age_ns), .value = "24h", .min = 0,
	 .max = 365 * DAY,
	 .help = "Profiles older than this are dropped from the spool and counted; 0 means "
		 "no limit."},

	{"store", "enabled", CONFIG_BOOL, AT(store_enabled), .value = "no",
	 .help = "Keep exported profiles on this host as well."},
	{"store", "path", CONFIG_PATH, AT(store_path),
	 .help = "Directory for the store, and for nothing else. perfwalk creates it; it belongs "
		 "to the user that perfwalk runs as. The default is /var/lib/perfwalk/store."},
	{"store", "max_bytes", CONFIG_BYTES, AT(store_max_bytes), .value = "1G", .min = MIB,
	 .max = 1024 * GIB,
	 .help = "Maximum size of the store. When it is full, the oldest profiles are "
		 "removed."},
	{"store", "max_age", CONFIG_DURATION, AT(store_max_age_ns), .value = "7d", .min = 0,
	 .max = 3650 * DAY, .help = "Profiles older than this are removed; 0 means no limit."},

	{"metrics", "listen", CONFIG_LISTEN, AT(metrics_listen),
	 .help = "Where to listen: unix:/run/perfwalk/metrics, 127.0.0.1:9464 or "
		 "[::1]:9464; nowhere by default. Other hosts cannot connect. Every user "
		 "of this host can connect to a port and see what everyone runs; only root "
		 "and the group of the user above can connect to the socket."},

	{"attributes", "allow", CONFIG_GLOBS, AT(attributes_allow),
	 .help = "Names of attributes to export, such as service.*, k8s.*; * ? [...] work. "
		 "Others are left out. By default all are exported."},
	{"attributes", "deny", CONFIG_GLOBS, AT(attributes_deny),
	 .value = CONFIG_SECRET_ATTRIBUTES ", goroutine.id",
	 .help = "Names of attributes to leave out, even if they are allowed. The default leaves "
		 "out command lines, because some SDKs publish them and they may hold secrets, and "
		 "the number of a goroutine, because a server has a new one for each request."},

	{"log", "level", CONFIG_LOG_LEVEL, AT(log_level), .value = "info",
	 .help = "The least severe level of messages to log."},

	{CONFIG_SECTION_EVENT, "event", CONFIG_WORD, AT_EVENT(event),
	 .help = "The event. By default it is NAME; with this key NAME is a name of your "
		 "own, so that two sections can sample one tracepoint with different "
		 "filters. uprobe:/PATH:FUNCTION and usdt:/PATH:PROVIDER:NAME are "
		 "functions and markers of programs; reload the config when such a file is "
		 "replaced."},
	{CONFIG_SECTION_EVENT, "filter", CONFIG_TEXT, AT_EVENT(filter),
	 .help = "For a tracepoint: sample only what matches, for instance prev_state == "
		 "2; perfwalk-record(1) explains this under --filter. The kernel drops the "
		 "rest before it copies a stack."},
	{CONFIG_SECTION_EVENT, "samples_per_second", CONFIG_COUNT, AT_EVENT(samples_per_second),
	 .value = "0", .min = 0, .max = 1000,
	 .help = "Samples per second on each CPU, for clocks and the processor's counters. "
		 "The kernel chooses the number of events between two samples, and each "
		 "sample stands for that many. For events that come in bursts, such as "
		 "page faults, this is a guess, and often many times too large: use "
		 "period. 0, the default, means the rate of "
		 "[profiler], unless a period is set or is the default."},
	{CONFIG_SECTION_EVENT, "period", CONFIG_COUNT, AT_EVENT(period), .value = "0", .min = 0,
	 .max = 2000000000,
	 .help = "Instead of a rate: one sample every so many events. 1 samples each "
		 "event, which is expensive if the event is frequent. 0, the default, "
		 "means a rate for clocks and the processor's counters, and 100 for all "
		 "other events."},
	{CONFIG_SECTION_EVENT, "budget", CONFIG_COUNT, AT_EVENT(budget), .value = "1000", .min = 0,
	 .max = 1000000,
	 .help = "The maximum number of samples per second on each CPU for an event with a "
		 "period. A sample costs 10 to 20 microseconds, so 1000 take about 2% of a "
		 "CPU. When the budget is used up, the kernel stops the event until the "
		 "next second. perfwalk counts how long it was stopped, and logs this once "
		 "a minute; the samples stand for the remaining time only. 0 means no "
		 "limit."},
	{CONFIG_SECTION_EVENT, "stack_size", CONFIG_AUTO_BYTES, AT_EVENT(stack_size_bytes),
	 .value = "auto", .min = KIB, .max = 65528, .multiple = 8,
	 .help = "Bytes of the user stack copied with each sample of this event. auto "
		 "takes the size of [profiler]. If that is auto, too, it is 8K for an "
		 "event with a period, 24K for memory_growth and 32K for an event with a "
		 "rate: with several events, sizes do not adapt."},
	{CONFIG_SECTION_EVENT, "user", CONFIG_BOOL, AT_EVENT(user), .value = "yes",
	 .help = "Sample events that happen while a program runs its own code."},
	{CONFIG_SECTION_EVENT, "kernel", CONFIG_BOOL, AT_EVENT(kernel), .value = "yes",
	 .help = "Sample events that happen while the kernel runs."},

	{CONFIG_SECTION_EXPORT, "endpoint", CONFIG_URL, AT_EXPORT(endpoint),
	 .help = "Base URL of an OTLP/HTTP server; perfwalk appends /v1development/profiles. For "
		 "instance http://localhost:4318 for an OpenTelemetry Collector, "
		 "http://localhost:4040 for Pyroscope."},
	{CONFIG_SECTION_EXPORT, "profiles_endpoint", CONFIG_URL_EXACT, AT_EXPORT(profiles_endpoint),
	 .help = "Complete URL, used unchanged; takes precedence over endpoint. With grpc, "
		 "perfwalk appends the name of the method."},
	{CONFIG_SECTION_EXPORT, "protocol", CONFIG_PROTOCOL, AT_EXPORT(protocol),
	 .value = "http/protobuf",
	 .help = "http/json is OTLP/HTTP as text, for servers that accept nothing else; it "
		 "costs several times as much. With grpc, endpoint is the URL of an "
		 "OTLP/gRPC server, for instance http://localhost:4317 for an "
		 "OpenTelemetry Collector or http://localhost:7070 for Parca; http then "
		 "means HTTP/2 without TLS."},
	{CONFIG_SECTION_EXPORT, "preset", CONFIG_PRESET, AT_EXPORT(preset), .value = "collector",
	 .help = "The kind of server. collector is for all servers that accept OTLP as "
		 "specified. pyroscope leaves out the attributes that distinguish the "
		 "processes and threads of a program (process.pid, thread.id, thread.name, "
		 "cpu.logical_number), because each would become a series of its own, and "
		 "adds such processes up. parca (grpc only) writes functions in a way that "
		 "version 0.28 reads correctly; it would confuse neighbouring functions "
		 "otherwise."},
	{CONFIG_SECTION_EXPORT, "headers", CONFIG_HEADERS, AT_EXPORT(headers),
	 .help = "HTTP headers as name=value, separated by commas. In values, %XX stands "
		 "for the byte with that hexadecimal number: %2C is a comma, %25 a percent "
		 "sign."},
	{CONFIG_SECTION_EXPORT, "headers_file", CONFIG_PATH, AT_EXPORT(headers_file),
	 .help = "File with more headers, one 'Name: value' on each line. Put credentials "
		 "here, in a file that only its owner can read (mode 0600)."},
	{CONFIG_SECTION_EXPORT, "compression", CONFIG_COMPRESSION, AT_EXPORT(compression),
	 .value = "gzip",
	 .help = "Compression of requests. Every server accepts gzip. zstd is smaller and "
		 "faster; an OpenTelemetry Collector accepts it."},
	{CONFIG_SECTION_EXPORT, "timeout", CONFIG_DURATION, AT_EXPORT(timeout_ns), .value = "10s",
	 .min = 100 * NSEC_PER_MSEC, .max = 10 * MIN, .help = "How long one request may take."},
	{CONFIG_SECTION_EXPORT, "certificate", CONFIG_PATH, AT_EXPORT(certificate),
	 .help = "PEM file with the certificate authorities that may vouch for the server. "
		 "The default is those of the system."},
	{CONFIG_SECTION_EXPORT, "client_certificate", CONFIG_PATH, AT_EXPORT(client_certificate),
	 .help = "PEM file with the certificate that perfwalk shows to the server."},
	{CONFIG_SECTION_EXPORT, "client_key", CONFIG_PATH, AT_EXPORT(client_key),
	 .help = "PEM file with the key of client_certificate."},
	{CONFIG_SECTION_EXPORT, "insecure_skip_verify", CONFIG_BOOL,
	 AT_EXPORT(insecure_skip_verify), .value = "no",
	 .help = "Accept any server certificate. Anyone on the network path can then read "
		 "the profiles and the headers."},
	{CONFIG_SECTION_EXPORT, "server_name_override", CONFIG_HOST,
	 AT_EXPORT(server_name_override),
	 .help = "For https: the name to request and to expect in the certificate of the "
		 "server, if it differs from the one in the URL."},
	{CONFIG_SECTION_EXPORT, "proxy", CONFIG_PROXY, AT_EXPORT(proxy),
	 .help = "URL of a proxy: http, https, socks5 or socks5h, for instance "
		 "http://proxy.example:3128; none means no proxy. By default the "
		 "environment decides (http_proxy in lower case, HTTPS_PROXY, ALL_PROXY, "
		 "NO_PROXY); these variables may contain credentials."},
	{CONFIG_SECTION_EXPORT, "max_request_size", CONFIG_BYTES, AT_EXPORT(max_request_bytes),
	 .value = "64M", .min = 16 * KIB, .max = 64 * MIB,
	 .help = "The largest request, before compression; larger ones are split in halves. "
		 "Profiles are made for 4M. There is no need to set a server's own limit here: "
		 "requests that it refuses for their size are split as well."},
	{CONFIG_SECTION_EXPORT, "max_queue_size", CONFIG_BYTES, AT_EXPORT(max_queue_bytes),
	 .value = "64M", .min = MIB, .max = 16 * GIB,
	 .help = "Memory for profiles that wait for this destination. When it is full, the oldest "
		 "profile goes to the spool, or is dropped and counted."},
	{CONFIG_SECTION_EXPORT, "max_elapsed_time", CONFIG_DURATION, AT_EXPORT(max_elapsed_ns),
	 .value = "1h", .min = 0, .max = 7 * DAY,
	 .help = "How long a profile may wait in memory for a destination that does not answer "
		 "before it is dropped and counted; 0 for no limit. In the spool, max_age counts "
		 "instead."},
};

const struct config_key *config_keys(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(keys);
	return keys;
}

const struct config_section *config_section_with_name(const char *section)
{
	size_t n = strcspn(section, ":");

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		if (sections[i].example && strlen(sections[i].name) == n &&
		    strncmp(sections[i].name, section, n) == 0)
			return &sections[i];
	}
	return NULL;
}

const struct config_section *config_sections(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(sections);
	return sections;
}
