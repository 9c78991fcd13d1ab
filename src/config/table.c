/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key there is. Loading, --print-config, the default config file and the check of
 * perfwalk.conf(5) all read this table, so a key is added here, in struct config and in the manual.
 */
#include "src/config/table.h"
#include "util/clock.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define MIN (60 * NSEC_PER_SEC)
#define DAY (24 * 60 * MIN)

#define AT(field)	 offsetof(struct config, field)
#define AT_EXPORT(field) offsetof(struct config_export, field)

static const struct config_section sections[] = {
	{"profiler", "What is sampled, and how often."},
	{"filter",
	 "What is sampled of the host. Of several kinds all must hold, of a list one; what is "
	 "excluded is out in any case. Samples that are left out are counted, and cost little: "
	 "their stacks are not walked."},
	{"symbolizer", "How much is said about each frame."},
	{"debuginfod",
	 "Debug files of programs that have none here are fetched from debuginfod servers, which "
	 "learn the build ids of what runs here. Nothing waits for them: names and lines get "
	 "better "
	 "when they have come."},
	{"limits",
	 "What perfwalk may take from the host. What does not fit is left out and counted, "
	 "never taken nevertheless."},
	{"process", "The daemon itself."},
	{"spool",
	 "What cannot be sent is kept on disk and sent later, also by the next start. Nothing is "
	 "written "
	 "as long as the destinations take what they get."},
	{"store",
	 "Profiles kept on this host for perfwalk report --last, as OTLP files. Without any "
	 "[export:NAME] they are always kept."},
	{"metrics",
	 "How perfwalk itself is doing, over HTTP: /metrics for Prometheus, /healthz, /readyz, and "
	 "/debug/pprof/profile?seconds=30 for a pprof of the whole host, as go tool pprof, Parca "
	 "and Alloy fetch it. Needs libmicrohttpd."},
	{CONFIG_SECTION_RESOURCE,
	 "Attributes added to everything that is exported, one a line: attribute = value. "
	 "service.name "
	 "gives all processes of the host one service instead of one for each program."},
	{"log", "Messages on standard error (the journal, under systemd)."},
	{CONFIG_SECTION_EXPORT,
	 "A destination; as many sections as there are destinations, each with a name of its own. "
	 "Each "
	 "has its own queue and retries, so one that is down holds up no other."},
};

static const struct config_key keys[] = {
	{"profiler", "samples_per_second", CONFIG_COUNT, AT(samples_per_second), "19", 1, 1000, 0,
	 false,
	 "Samples a second on each CPU that is busy. A number that is no divisor of 1000 keeps "
	 "away "
	 "from the beat of timers."},
	{"profiler", "reporter_interval", CONFIG_DURATION, AT(reporter_interval_ns), "10s",
	 NSEC_PER_SEC, 60 * MIN, 0, false,
	 "Length of one profile: after each interval what was added up is exported."},
	{"profiler", "stack_size", CONFIG_AUTO_BYTES, AT(stack_size_bytes), "auto", KIB, 65528, 8,
	 false,
	 "Bytes of the user stack copied with each sample. Frames beyond are reported as "
	 "truncated. "
	 "The kernel takes no more than 65528. auto begins with 16K and takes more, up to what "
	 "ring_size "
	 "has room for, as long as that completes stacks that were cut. Stacks that are larger "
	 "than "
	 "65528 are continued by frame pointers where those are proven right."},
	{"profiler", "ring_size", CONFIG_BYTES, AT(ring_size_bytes), "2M", 128 * KIB, GIB, 0, true,
	 "Bytes of the buffer between the kernel and perfwalk, for each CPU. Samples that find it "
	 "full "
	 "are lost and counted."},
	{"profiler", "kernel_stacks", CONFIG_BOOL, AT(kernel_stacks), "yes", 0, 0, 0, false,
	 "Also record the kernel's part of each stack, where the kernel allows it."},
	{"profiler", "max_frames", CONFIG_COUNT, AT(max_frames), "1024", 16, 16384, 0, false,
	 "Frames of one stack; what lies beyond is reported as truncated."},

	{"filter", "include_comm", CONFIG_GLOBS, AT(include[CONFIG_FILTER_COMM]), NULL, 0, 0, 0,
	 false,
	 "Names of processes or threads, with * ? [...] as in the shell. All lists are separated "
	 "by "
	 "commas."},
	{"filter", "exclude_comm", CONFIG_GLOBS, AT(exclude[CONFIG_FILTER_COMM]), NULL, 0, 0, 0,
	 false, "The same, to be left out."},
	{"filter", "include_user", CONFIG_USERS, AT(include[CONFIG_FILTER_USER]), NULL, 0, 0, 0,
	 false,
	 "Names or numbers of users, by the effective user of a process; names are looked up when "
	 "the config is read. A process that ended before it was looked at counts as its parent's "
	 "user's."},
	{"filter", "exclude_user", CONFIG_USERS, AT(exclude[CONFIG_FILTER_USER]), NULL, 0, 0, 0,
	 false, "The same, to be left out."},
	{"filter", "include_unit", CONFIG_GLOBS, AT(include[CONFIG_FILTER_UNIT]), NULL, 0, 0, 0,
	 false,
	 "systemd services, scopes and slices, with * ? [...]; without a suffix, .service is "
	 "meant."},
	{"filter", "exclude_unit", CONFIG_GLOBS, AT(exclude[CONFIG_FILTER_UNIT]), NULL, 0, 0, 0,
	 false, "The same, to be left out."},
	{"filter", "include_container", CONFIG_CONTAINERS, AT(include[CONFIG_FILTER_CONTAINER]),
	 NULL, 0, 0, 0, false,
	 "How ids or names of containers begin; in Kubernetes NAMESPACE/POD/CONTAINER, its pod or "
	 "its "
	 "container. perfwalk list containers shows them."},
	{"filter", "exclude_container", CONFIG_CONTAINERS, AT(exclude[CONFIG_FILTER_CONTAINER]),
	 NULL, 0, 0, 0, false, "The same, to be left out."},
	{"filter", "include_cgroup", CONFIG_CGROUPS, AT(include[CONFIG_FILTER_CGROUP]), NULL, 0, 0,
	 0, false,
	 "Control groups with all below them: /system.slice/nginx.service, with or without "
	 "/sys/fs/cgroup before it."},
	{"filter", "exclude_cgroup", CONFIG_CGROUPS, AT(exclude[CONFIG_FILTER_CGROUP]), NULL, 0, 0,
	 0, false, "The same, to be left out."},
	{"filter", "include_cpus", CONFIG_CPUS, AT(include[CONFIG_FILTER_CPUS]), NULL, 0, 0, 0,
	 false, "Numbers and ranges of CPUs: 0-3,8. Others have no events at all."},
	{"filter", "exclude_cpus", CONFIG_CPUS, AT(exclude[CONFIG_FILTER_CPUS]), NULL, 0, 0, 0,
	 false, "The same, to be left out."},

	{"symbolizer", "lines", CONFIG_BOOL, AT(source_lines), "no", 0, 0, 0, false,
	 "Source file and line of each frame, where a program or its separate debug file has "
	 "debugging information. There, an address that was not seen before costs some 20 "
	 "microseconds, and a large file up to 16M of the memory for symbols; elsewhere nothing. "
	 "Captures have lines; the daemon is small without: on a busy host with debugging "
	 "information they took 5 microseconds a sample and 25M."},
	{"symbolizer", "inline", CONFIG_BOOL, AT(inline_frames), "no", 0, 0, 0, false,
	 "Functions that the compiler inlined as frames of their own, from the same information."},
	{"symbolizer", "demangle", CONFIG_DEMANGLE, AT(demangle), "full", 0, 0, 0, false,
	 "How names of C++, Rust and D are shown: full with parameters and template arguments, as "
	 "std::vector<int>::push_back(int&&), simple without, as std::vector::push_back, none as "
	 "the linker knows them. OTLP and pprof carry the linker's name besides in any case."},

	{"debuginfod", "urls", CONFIG_URLS, AT(debuginfod_urls), NULL, 0, 0, 0, false,
	 "Base URLs of the servers with blanks between them, asked in this order; none by default. "
	 "DEBUGINFOD_URLS in the environment goes before it."},
	{"debuginfod", "cache_path", CONFIG_PATH, AT(debuginfod_cache_path), NULL, 0, 0, 0, false,
	 "Directory of its own for what was fetched; it is made, and belongs to the user that "
	 "perfwalk runs as. By default /var/cache/perfwalk/debuginfod; where XDG_CACHE_HOME is "
	 "set perfwalk/debuginfod there, and of users other than root in ~/.cache."},
	{"debuginfod", "cache_size", CONFIG_BYTES, AT(debuginfod_cache_bytes), "1G", MIB,
	 1024 * GIB, 0, false, "Room for it. When it is full the files not used for longest go."},
	{"debuginfod", "max_file_size", CONFIG_BYTES, AT(debuginfod_max_file_bytes), "256M", KIB,
	 4 * GIB, 0, false, "The largest file that is fetched."},
	{"debuginfod", "timeout", CONFIG_DURATION, AT(debuginfod_timeout_ns), "2m", NSEC_PER_SEC,
	 60 * MIN, 0, false, "How long one download may take."},

	{"limits", "window_memory", CONFIG_BYTES, AT(window_memory_bytes), "32M", MIB, 4 * GIB, 0,
	 false, "Memory for the stacks and samples of one interval."},
	{"limits", "unwind_rows", CONFIG_BYTES, AT(unwind_rows_bytes), "8M", MIB, 4 * GIB, 0, false,
	 "Memory for compiled unwind rules, shared by all processes."},
	{"limits", "symbols", CONFIG_BYTES, AT(symbols_bytes), "32M", MIB, 4 * GIB, 0, false,
	 "Memory for symbol tables and source lines kept from one interval to the next, and as "
	 "much "
	 "again for names of code that processes compile while they run. What does not fit is read "
	 "again from its file when it is needed."},
	{"limits", "symbolizer_memory", CONFIG_BYTES, AT(symbolizer_memory_bytes), "1G", 64 * MIB,
	 64 * GIB, 0, false,
	 "Address space of the process that reads debugging information, three eighths of it for "
	 "data, which is where a hostile "
	 "file "
	 "would have to be stopped."},
	{"limits", "symbolizer_file_timeout", CONFIG_DURATION, AT(symbolizer_file_timeout_ns), "3s",
	 100 * NSEC_PER_MSEC, 5 * MIN, 0, false,
	 "How much CPU time one file may take, or how long it may be waited for, before it is set "
	 "aside "
	 "for an hour, then for twice as long each time; its frames then go out as "
	 "addresses."},
	{"limits", "max_processes", CONFIG_COUNT, AT(max_processes), "65536", 16, 4194304, 0, false,
	 "Processes known at one time."},
	{"limits", "max_open_files", CONFIG_COUNT, AT(max_open_files), "1024", 16, 1048576, 0,
	 false,
	 "Executables and libraries held open for unwinding and naming, so that programs that were "
	 "deleted or upgraded keep their names."},

	{"process", "user", CONFIG_WORD, AT(user), "perfwalk", 0, 0, 0, false,
	 "The user that everything but the small privileged part runs as. Where it does not exist, "
	 "nobody is taken and the log says so."},

	{"process", "control", CONFIG_PATH, AT(control), "/run/perfwalk/control", 0, 0, 0, false,
	 "The socket of perfwalk ctl; its directory is made. Root, the user that started the "
	 "daemon "
	 "and the group of the user above may use it. A second daemon needs another one."},

	{"spool", "enabled", CONFIG_BOOL, AT(spool_enabled), "yes", 0, 0, 0, false,
	 "Without it, what cannot be sent is kept in memory only, and lost at the end."},
	{"spool", "path", CONFIG_PATH, AT(spool_path), NULL, 0, 0, 0, false,
	 "Directory of its own for this; it is made, and belongs to the user that perfwalk runs "
	 "as. By default /var/lib/perfwalk/spool."},
	{"spool", "max_bytes", CONFIG_BYTES, AT(spool_max_bytes), "256M", MIB, 1024 * GIB, 0, false,
	 "Room for it. When it is full the oldest profiles are dropped and counted."},
	{"spool", "max_age", CONFIG_DURATION, AT(spool_max_age_ns), "24h", 0, 365 * DAY, 0, false,
	 "Profiles older than this are dropped from the spool and counted; 0 for no limit."},

	{"store", "enabled", CONFIG_BOOL, AT(store_enabled), "no", 0, 0, 0, false,
	 "Also keep what is exported."},
	{"store", "path", CONFIG_PATH, AT(store_path), NULL, 0, 0, 0, false,
	 "Directory of its own for this; it is made, and belongs to the user that perfwalk runs "
	 "as. By default /var/lib/perfwalk/store."},
	{"store", "max_bytes", CONFIG_BYTES, AT(store_max_bytes), "1G", MIB, 1024 * GIB, 0, false,
	 "Room for it. When it is full the oldest profiles go."},
	{"store", "max_age", CONFIG_DURATION, AT(store_max_age_ns), "7d", 0, 3650 * DAY, 0, false,
	 "Profiles older than this go; 0 for no limit."},

	{"metrics", "listen", CONFIG_LISTEN, AT(metrics_listen), NULL, 0, 0, 0, false,
	 "Where: 127.0.0.1:9464, [::1]:9464 or unix:/run/perfwalk/metrics; nowhere by default. "
	 "Other "
	 "hosts cannot get there. All users of this host can get to a port, and see what everyone "
	 "runs; the socket is for root and the group of the user above."},

	{"log", "level", CONFIG_LOG_LEVEL, AT(log_level), "info", 0, 0, 0, false,
	 "The least severe kind of message that is still written."},

	{CONFIG_SECTION_EXPORT, "endpoint", CONFIG_URL, AT_EXPORT(endpoint), NULL, 0, 0, 0, false,
	 "Base URL of an OTLP/HTTP server; /v1development/profiles is added to it. For instance "
	 "http://localhost:4318 for an OpenTelemetry Collector, http://localhost:4040 for "
	 "Pyroscope."},
	{CONFIG_SECTION_EXPORT, "profiles_endpoint", CONFIG_URL_EXACT, AT_EXPORT(profiles_endpoint),
	 NULL, 0, 0, 0, false,
	 "Complete URL, used as it is; goes before endpoint. With grpc, the method's name is added "
	 "to it all the same."},
	{CONFIG_SECTION_EXPORT, "protocol", CONFIG_PROTOCOL, AT_EXPORT(protocol), "http/protobuf",
	 0, 0, 0, false,
	 "http/json is OTLP/HTTP in text, for servers that take nothing else: it costs several "
	 "times "
	 "as much. With grpc, endpoint is the URL of an OTLP/gRPC server, for instance "
	 "http://localhost:4317 "
	 "for an OpenTelemetry Collector, http://localhost:7070 for Parca; http is HTTP/2 without "
	 "TLS."},
	{CONFIG_SECTION_EXPORT, "preset", CONFIG_PRESET, AT_EXPORT(preset), "collector", 0, 0, 0,
	 false,
	 "What the server is, where it matters. collector is for all that take OTLP as it is "
	 "specified. For pyroscope, what tells the processes of a program apart (process.pid) "
	 "stays "
	 "out, since it would make a series of each. For parca, which takes grpc only, functions "
	 "are "
	 "written so that versions that mistake one for its neighbour (0.28) name them right."},
	{CONFIG_SECTION_EXPORT, "headers", CONFIG_HEADERS, AT_EXPORT(headers), NULL, 0, 0, 0, false,
	 "HTTP headers as name=value, separated by commas. In values, %XX stands for the byte of "
	 "that "
	 "hexadecimal number: %2C is a comma, %25 a percent sign."},
	{CONFIG_SECTION_EXPORT, "headers_file", CONFIG_PATH, AT_EXPORT(headers_file), NULL, 0, 0, 0,
	 false,
	 "File with more headers, one 'Name: value' a line: the place for credentials. No one but "
	 "its "
	 "owner should be able to read it (mode 0600)."},
	{CONFIG_SECTION_EXPORT, "compression", CONFIG_COMPRESSION, AT_EXPORT(compression), "gzip",
	 0, 0, 0, false,
	 "Compression of what is sent. Every server takes gzip; zstd is smaller for less time, "
	 "where "
	 "the server takes it, as an OpenTelemetry Collector does."},
	{CONFIG_SECTION_EXPORT, "timeout", CONFIG_DURATION, AT_EXPORT(timeout_ns), "10s",
	 100 * NSEC_PER_MSEC, 10 * MIN, 0, false, "How long one request may take."},
	{CONFIG_SECTION_EXPORT, "certificate", CONFIG_PATH, AT_EXPORT(certificate), NULL, 0, 0, 0,
	 false,
	 "PEM file with the certificate authorities that vouch for the server; by default those of "
	 "the "
	 "system."},
	{CONFIG_SECTION_EXPORT, "client_certificate", CONFIG_PATH, AT_EXPORT(client_certificate),
	 NULL, 0, 0, 0, false, "PEM file with the certificate that perfwalk shows to the server."},
	{CONFIG_SECTION_EXPORT, "client_key", CONFIG_PATH, AT_EXPORT(client_key), NULL, 0, 0, 0,
	 false, "PEM file with the key of client_certificate."},
	{CONFIG_SECTION_EXPORT, "insecure_skip_verify", CONFIG_BOOL,
	 AT_EXPORT(insecure_skip_verify), "no", 0, 0, 0, false,
	 "Take any server certificate. Whoever sits on the network in between can then read the "
	 "profiles and the headers."},
	{CONFIG_SECTION_EXPORT, "server_name_override", CONFIG_HOST,
	 AT_EXPORT(server_name_override), NULL, 0, 0, 0, false,
	 "With https, the name that the server is asked for and that its certificate has to be "
	 "for, "
	 "where it is reached by another one or by an address."},
	{CONFIG_SECTION_EXPORT, "proxy", CONFIG_PROXY, AT_EXPORT(proxy), NULL, 0, 0, 0, false,
	 "URL of a proxy: http, https, socks5 or socks5h, as in http://proxy.example:3128; none "
	 "for none at all. By default the environment decides (http_proxy in small letters, "
	 "HTTPS_PROXY, ALL_PROXY, NO_PROXY); those variables may contain credentials."},
	{CONFIG_SECTION_EXPORT, "max_request_size", CONFIG_BYTES, AT_EXPORT(max_request_bytes),
	 "64M", 16 * KIB, 64 * MIB, 0, false,
	 "The largest request, before compression; what is larger goes in halves. Profiles are "
	 "made "
	 "for 4M. A server's own limit need not be set here: what it refuses for its size goes in "
	 "halves too."},
	{CONFIG_SECTION_EXPORT, "max_queue_size", CONFIG_BYTES, AT_EXPORT(max_queue_bytes), "64M",
	 MIB, 16 * GIB, 0, false,
	 "Memory for profiles that wait for this destination. When it is full the oldest goes to "
	 "the "
	 "spool, or else is dropped and counted."},
	{CONFIG_SECTION_EXPORT, "max_elapsed_time", CONFIG_DURATION, AT_EXPORT(max_elapsed_ns),
	 "1h", 0, 7 * DAY, 0, false,
	 "How long a profile may wait in memory for a destination that does not answer before it "
	 "is dropped and counted; 0 for no limit. In the spool, max_age counts instead."},
};

const struct config_key *config_keys(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(keys);
	return keys;
}

const struct config_section *config_sections(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(sections);
	return sections;
}
