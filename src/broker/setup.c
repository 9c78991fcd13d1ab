/* SPDX-License-Identifier: Apache-2.0 */
/* The set-up of each child at its start: one struct of numbers, then texts and descriptors. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/broker/cloud.h"
#include "src/broker/filter-texts.h"
#include "src/broker/internal.h"
#include "src/broker/limits.h"
#include "src/config/config.h"
#include "src/exporter/setup.h"
#include "src/fetcher/setup.h"
#include "src/metrics/setup.h"
#include "src/opener/opener.h"
#include "src/opener/state-dir.h"
#include "src/process/sandbox.h"
#include "src/process/setup.h"
#include "src/process/statistics.h"
#include "src/process/status-page.h"
#include "src/profiler/setup.h"
#include "src/screen/setup.h"
#include "src/symbolizer/setup.h"
#include "util/globs.h"
#include "util/log.h"

#define DEFAULT_SPOOL	   LOCALSTATEDIR "/lib/perfwalk/spool"
#define MAX_KALLSYMS_BYTES (UINT64_C(64) << 20)
/* The profiler's descriptors apart from files, rings and windows; and files that it can hardly do
 * without. */
#define PROFILER_DESCRIPTORS 16
#define PROFILER_MIN_FILES   4

/* What config_load() takes fits. */
_Static_assert(CONFIG_VALUE_MAX_BYTES < PROTOCOL_TEXT_MAX, "into a message");
_Static_assert(CONFIG_MAX_EXPORTS <= SETUP_MAX_DESTINATIONS, "into the set-up of the exporter");
_Static_assert(CONFIG_DEBUGINFOD_MAX_URLS <= SETUP_MAX_URLS, "into the set-up of the fetcher");

static const enum sandbox_mode seccomp_modes[] = {[CONFIG_SECCOMP_ERRNO] = SANDBOX_ERRNO,
						  [CONFIG_SECCOMP_KILL] = SANDBOX_KILL,
						  [CONFIG_SECCOMP_NO] = SANDBOX_NO};

enum sandbox_mode broker_seccomp(const struct broker *b)
{
	return sandbox_choose_mode(seccomp_modes[b->options.config->seccomp]);
}

static uint32_t n_rings(const struct broker *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->options.n_events; i++)
		n += b->events[i].cpus.n;
	return n;
}

uint32_t broker_files_of_profiler(const struct broker *b)
{
	struct rlimit l = {.rlim_cur = 0};
	uint64_t others, left;

	(void)getrlimit(RLIMIT_NOFILE, &l);
	others = 2 * (uint64_t)n_rings(b) + PROFILER_DESCRIPTORS;
	left = l.rlim_cur > others ? (l.rlim_cur - others) / 2 : 0;
	if (left < PROFILER_MIN_FILES)
		left = PROFILER_MIN_FILES;
	return left < b->options.config->max_open_files ? (uint32_t)left
							: b->options.config->max_open_files;
}

void broker_limit(const struct broker *b, enum peer kind, struct privileges *ret)
{
	const struct limits_basis basis =
		limits_basis_of(b->options.config, n_rings(b), b->events[0].cpus.n);
	bool capture = kind == PEER_SYMBOLIZER && b->options.capture;

	limits_set(ret, capture ? LIMITS_CAPTURE : (enum limits_role)kind, &basis);
}

struct setup_common broker_common_setup(const struct broker *b, enum peer kind)
{
	struct setup_common c = {.privileges =
					 sandbox_uses_network(kind) ? b->network : b->privileges,
				 .log_level = (uint32_t)log_get_level(),
				 .seccomp = broker_seccomp(b),
				 .landlock = b->options.config->landlock};

	broker_limit(b, kind, &c.privileges);
	return c;
}

int broker_send_cpu(const struct broker *b, const struct cpu_events *c, bool came_online)
{
	struct message m = {.type = MESSAGE_CPU_ADD};
	const int fds[2] = {c->events.sample_fd, c->events.sideband_fd};
	int r;

	m.cpu.cpu = c->events.cpu;
	m.cpu.index = c->events.index;
	m.cpu.came_online = came_online;
	m.cpu.sample_ring_bytes = c->events.sample_ring_bytes;
	m.cpu.sideband_ring_bytes = c->events.sideband_ring_bytes;
	r = supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, fds, fds[1] >= 0 ? 2 : 1);
	return r < 0 ? r : broker_send_event(b, c);
}

int broker_send_event(const struct broker *b, const struct cpu_events *c)
{
	struct message m = {.type = MESSAGE_CPU_EVENT};

	if (c->events.event_fd < 0)
		return 0;
	m.cpu.cpu = c->events.cpu;
	m.cpu.index = c->events.index;
	broker_tell_reader(b, c);
	return supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, &c->events.event_fd, 1);
}

static int send_filter(void *ctx, const char *text)
{
	struct setup_sender *to = ctx;

	setup_put_text(to, TEXT_FILTER, text);
	return to->result;
}

/* A copy where our children would find no addresses in it; modules that come later are not there.
 */
static int open_kallsyms(void)
{
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC), copy;

	if (fd < 0 || !privileges_kallsyms_need_them(fd))
		return fd;
	copy = lseek(fd, 0, SEEK_SET) < 0 ? -errno : opener_copy(fd, MAX_KALLSYMS_BYTES);
	(void)close(fd);
	return copy;
}

/* What the kernel says of itself; without it its frames have no names. */
static void send_kernel(struct setup_sender *to)
{
	_cleanup_close_ int kallsyms = open_kallsyms();
	_cleanup_close_ int notes = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);

	if (kallsyms >= 0)
		setup_put_file(to, TEXT_KALLSYMS, "/proc/kallsyms", kallsyms);
	if (notes >= 0)
		setup_put_file(to, TEXT_KERNEL_NOTES, "/sys/kernel/notes", notes);
}

/*
 * The input of a conversion. A second profiler would read the file again from the start, and the
 * symbolizer has a part of it already: who dies of a file ends the conversion.
 */
static void send_input(struct broker *b, struct setup_sender *to)
{
	if (supervisor_starts(b->supervisor, peer_only(PEER_PROFILER)) > 1) {
		log_error("%s cannot be converted: the process that read it, or a file it names, "
			  "died",
			  b->options.input_path);
		b->state = BROKER_STOPPING;
		b->result = -EBADMSG;
		supervisor_kill_all(b->supervisor);
		to->result = -EBADMSG;
		return;
	}
	send_kernel(to);
	setup_put_text(to, TEXT_EVENT, b->options.input_event);
	setup_put_file(to, TEXT_INPUT, b->options.input_path, b->options.input_fd);
}

static void send_cpus(const struct broker *b, const struct events *e, struct setup_sender *to)
{
	for (uint32_t i = 0; i < e->cpus.n && setup_may_send(to); i++)
		to->result = broker_send_cpu(b, &e->cpus.items[i], false);
}

/* Which resource attributes may leave the host. */
static void send_attribute_rules(const struct config *c, struct setup_sender *to)
{
	setup_put_text(to, TEXT_ALLOW, c->attributes_allow ? c->attributes_allow : "");
	setup_put_text(to, TEXT_DENY, c->attributes_deny ? c->attributes_deny : "");
}

/* Does the local store get what is exported? Without a destination it does. */
static bool keeps(const struct broker *b)
{
	const struct broker_options *o = &b->options;

	return !o->capture && !o->screen && (o->config->store_enabled || o->config->n_exports == 0);
}

int broker_set_up_profiler(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	const struct config *c = b->options.config;
	struct setup_profiler s = {
		.common = broker_common_setup(b, PEER_PROFILER),
		.n_events = b->options.n_events,
		.of_tasks = b->options.n_pids > 0,
		.other_numbers = !sample_sees_all_processes(),
		.interval_ns = b->options.interval_ns,
		.window_memory_bytes = c->window_memory_bytes,
		.unwind_rows_bytes = c->unwind_rows_bytes,
		.max_processes = c->max_processes,
		.max_open_files = broker_files_of_profiler(b),
		.max_frames = c->max_frames,
		.n_cpus = b->options.n_events > 0 ? (uint32_t)b->events[0].cpus.n : 0,
		.capture = b->options.capture,
		.live = b->options.screen != NULL,
		.keeps = keeps(b),
		.paused = b->paused,
		.adapt_stack_size = b->adapt_stack_size,
		.interpreters = c->interpreters && !b->options.input_path,
	};
	struct setup_sender to;

	for (uint32_t i = 0; i < s.n_events; i++) {
		s.events[i].options = b->events[i].sample;
		s.events[i].options.filter = NULL; /* an address here means nothing there */
		s.events[i].options.event.uprobe = NULL;
		s.events[i].features = b->events[i].features;
	}
	to = setup_begin(control, &s, sizeof(s), status_fd);
	/* Groups that the kernel picks out need not be picked out again. */
	if (to.result == 0)
		to.result = filter_texts_each(c, b->n_cgroups == 0, send_filter, &to);
	send_attribute_rules(c, &to);
	if (to.result == 0 && b->options.input_path)
		send_input(b, &to);
	if (b->ledger) {
		setup_put_file(&to, TEXT_LEDGER, "", b->ledger_fd);
		setup_put_file(&to, TEXT_BLOCKS, "", b->blocks_fd);
	}
	(void)setup_finish(&to);
	b->turns.known = false; /* of places: a new profiler knows none */
	broker_tell_targets(b, supervisor_starts(b->supervisor, who) > 1);
	for (uint32_t i = 0; i < s.n_events; i++)
		send_cpus(b, &b->events[i], &to);
	return to.result;
}

static void send_host_facts(struct setup_sender *to)
{
	struct utsname u;
	char id[64];

	if (!*cloud_host_id(id, sizeof(id)))
		(void)cloud_read_line("/etc/machine-id", id, sizeof(id));
	if (uname(&u) == 0) {
		setup_put_text(to, TEXT_HOST_NAME, u.nodename);
		setup_put_text(to, TEXT_KERNEL_RELEASE, u.release);
	}
	if (id[0])
		setup_put_text(to, TEXT_HOST_ID, id);
}

/* Reading lines is the most expensive part of naming: a capture does it where something shows them.
 */
static bool lines_are_shown(const struct broker *b)
{
	const struct broker_options *o = &b->options;
	bool shown = !o->capture;

	for (uint32_t i = 0; i < o->n_outputs; i++)
		shown |= o->outputs[i].lines;
	for (uint32_t i = 0; o->view && i < o->view->report.n_keys; i++)
		shown |= o->view->report.keys[i] == REPORT_LINE;
	return shown;
}

enum symbol_demangling broker_demangling(enum config_demangle style)
{
	static const enum symbol_demangling styles[] = {
		[CONFIG_DEMANGLE_FULL] = SYMBOL_DEMANGLE_FULL,
		[CONFIG_DEMANGLE_SIMPLE] = SYMBOL_DEMANGLE_SIMPLE,
		[CONFIG_DEMANGLE_NONE] = SYMBOL_DEMANGLE_NONE};

	return styles[style];
}

/* What the config says of the cloud wins. */
static void send_cloud(const struct config *c, struct setup_sender *to)
{
	static const char key[] = "cloud.provider";
	const char *provider = cloud_provider();

	if (!provider || !globs_allow(c->attributes_allow, c->attributes_deny, key))
		return;
	for (size_t i = 0; i < c->n_resource; i++) {
		if (strcmp(c->resource[2 * i], key) == 0)
			return;
	}
	setup_put_text(to, TEXT_RESOURCE, key);
	setup_put_text(to, TEXT_RESOURCE, provider);
}

static uint32_t event_of_switches(const struct broker *b)
{
	for (uint32_t i = 0; i < b->options.n_events; i++) {
		if (b->options.events[i].use == SAMPLE_USE_SWITCHES)
			return i;
	}
	return UINT32_MAX;
}

/* The part that a reload may change: sent at the start, and again to a running symbolizer
 * (status_fd -1). */
static struct setup_sender begin_symbolizer(struct broker *b, int control, int status_fd)
{
	const struct config *c = b->options.config;
	uint32_t reduced = b->budget.reduced;
	char text[REDUCED_TEXT_MAX];
	struct setup_symbolizer s = {
		.common = broker_common_setup(b, PEER_SYMBOLIZER),
		.symbols_bytes = c->symbols_bytes,
		.profile_bytes =
			b->options.capture ? BROKER_CAPTURE_BYTES : 2 * c->window_memory_bytes,
		.window_ns = b->options.capture ? 0 : b->options.interval_ns,
		.max_open_files = c->max_open_files,
		.n_cpus = b->events[0].cpus.n,
		.terminal_width = b->options.terminal_width,
		.place = b->place,
		.switches = event_of_switches(b),
		.lost = b->custody.lost,
		.lost_counted = b->custody.counted,
		.capture = b->options.capture,
		.keeps = keeps(b),
		.live = b->options.screen != NULL,
		.color = b->options.color,
		.lines = c->source_lines && lines_are_shown(b) &&
			 !(reduced & REDUCED_BIT(REDUCED_LINES)),
		.inlined = c->inline_frames && !(reduced & REDUCED_BIT(REDUCED_INLINES)),
		.show_idle = c->off_cpu_idle,
		.hide_native = !c->native_frames,
		.sparing = (reduced & REDUCED_BIT(REDUCED_NAMES)) != 0,
		.demangle = broker_demangling(c->demangle),
	};
	struct setup_sender to;

	if (b->options.view) {
		s.view = b->options.view->view;
		s.report = b->options.view->report;
		s.hide_native = b->options.view->hide_native;
	}
	to = setup_begin(control, &s, sizeof(s), status_fd);
	setup_put_text(&to, TEXT_SERVICE_NAME, c->service_name ? c->service_name : "");
	setup_put_text(&to, TEXT_REDUCED, statistics_reduced(reduced, text, sizeof(text)));
	send_attribute_rules(c, &to);
	if (!b->options.input_path)
		send_cloud(c, &to);
	for (size_t i = 0; i < 2 * c->n_resource; i++)
		setup_put_text(&to, TEXT_RESOURCE, c->resource[i]);
	return to;
}

int broker_set_up_symbolizer(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	const struct broker_options *o = &b->options;
	struct setup_sender to = begin_symbolizer(b, control, status_fd);

	send_kernel(&to);
	/* A file may be of another host than this one. */
	if (!o->input_path)
		send_host_facts(&to);
	setup_put_text(&to, TEXT_TITLE, o->title);
	if (o->asked)
		setup_put_text(&to, TEXT_ASKED, o->asked);
	setup_put_text(&to, TEXT_SYMBOL, o->view_symbol);
	setup_put_text(&to, TEXT_COMM, o->view_comm);
	setup_put_text(&to, TEXT_CONTAINER, o->view_container);
	setup_put_text(&to, TEXT_SERVICE, o->view_service);
	for (uint32_t i = 0; i < o->n_outputs; i++) {
		setup_put_text(&to, TEXT_OUTPUT_FORMAT, o->outputs[i].format);
		setup_put_file(&to, TEXT_OUTPUT, o->outputs[i].path, o->outputs[i].fd);
	}
	if (o->summary_fd >= 0)
		setup_put_file(&to, TEXT_SUMMARY, "standard output", o->summary_fd);
	return setup_finish(&to);
}

static void send_destination(struct setup_sender *to, const struct config_export *x)
{
	setup_put_text(to, TEXT_EXPORT_NAME, x->name);
	setup_put_text(to, TEXT_EXPORT_ENDPOINT, x->endpoint);
	setup_put_text(to, TEXT_EXPORT_PROFILES_ENDPOINT, x->profiles_endpoint);
	for (size_t i = 0; i < x->n_headers; i++)
		setup_put_text(to, TEXT_EXPORT_HEADER, x->headers[i]);
	setup_put_text(to, TEXT_EXPORT_CERTIFICATE, x->certificate);
	setup_put_text(to, TEXT_EXPORT_CLIENT_CERTIFICATE, x->client_certificate);
	setup_put_text(to, TEXT_EXPORT_CLIENT_KEY, x->client_key);
	setup_put_text(to, TEXT_EXPORT_SERVER_NAME, x->server_name_override);
	setup_put_text(to, TEXT_EXPORT_PROXY, x->proxy);
}

/* Is it in a directory that systemd made for the service? */
static bool is_of_service(const char *path)
{
	static const char *const names[] = {"STATE_DIRECTORY", "CACHE_DIRECTORY"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *directory = getenv(names[i]);
		size_t n = directory ? strlen(directory) : 0;

		if (n && *directory == '/' && strncmp(path, directory, n) == 0 && path[n] == '/' &&
		    !strstr(path + n, "/.."))
			return true;
	}
	return false;
}

int broker_open_state_dir(struct broker *b, struct broker_state_dir *d, const char *path,
			  bool shared, const char *what, const char *instead)
{
	const struct state_owner owner = {b->network.uid, b->network.gid, b->privileges.uid,
					  is_of_service(path)};
	char error[512];

	if (d->path && strcmp(d->path, path) == 0)
		return d->fd;
	d->fd = close_fd(d->fd);
	free(d->path);
	d->path = strdup(path);
	if (!*path)
		return -1;
	d->fd = state_dir_open(path, &owner, shared, error, sizeof(error));
	if (d->fd < 0)
		log_warning("%s: %s is not used: %s; %s", what, path, error, instead);
	return d->fd;
}

void broker_forget_failed_dir(struct broker_state_dir *d)
{
	if (d->fd >= 0)
		return;
	free(d->path);
	d->path = NULL;
}

static int open_spool(struct broker *b)
{
	const struct config *c = b->options.config;

	return broker_open_state_dir(b, &b->spool,
				     !c->spool_enabled || c->n_exports == 0 ? ""
				     : c->spool_path			    ? c->spool_path
									    : DEFAULT_SPOOL,
				     false, "spool", "unsent profiles are kept in memory only");
}

static int open_store(struct broker *b)
{
	const struct config *c = b->options.config;

	return broker_open_state_dir(b, &b->store,
				     !keeps(b)	     ? ""
				     : c->store_path ? c->store_path
						     : CONFIG_DEFAULT_STORE,
				     false, "store", "profiles are not kept on this host");
}

int broker_check_destination(struct broker *b)
{
	const struct broker_options *o = &b->options;

	if (o->capture || o->screen || o->config->n_exports > 0 || o->config->metrics_listen ||
	    open_store(b) >= 0)
		return 0;
	log_error("so profiles have no destination: set another path in [store], or add an "
		  "[export:NAME]");
	return -ENOTDIR;
}

static const enum export_protocol protocols[] = {[CONFIG_HTTP_PROTOBUF] = EXPORT_HTTP_PROTOBUF,
						 [CONFIG_GRPC] = EXPORT_GRPC,
						 [CONFIG_HTTP_JSON] = EXPORT_HTTP_JSON};
static const enum encoding encodings[] = {[CONFIG_NONE] = ENCODING_IDENTITY,
					  [CONFIG_GZIP] = ENCODING_GZIP,
					  [CONFIG_ZSTD] = ENCODING_ZSTD};

static const enum otlp_dialect dialects[] = {[CONFIG_COLLECTOR] = OTLP_PLAIN,
					     [CONFIG_PYROSCOPE] = OTLP_PYROSCOPE,
					     [CONFIG_PARCA] = OTLP_PARCA};

int broker_set_up_exporter(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	const struct config *c = b->options.config;
	struct setup_exporter s = {
		.common = broker_common_setup(b, PEER_EXPORTER),
		.spool_max_bytes = c->spool_max_bytes,
		.spool_max_age_ns = c->spool_max_age_ns,
		.store_max_bytes = c->store_max_bytes,
		.store_max_age_ns = c->store_max_age_ns,
	};
	int spool_fd = open_spool(b), store_fd = open_store(b);
	struct setup_sender to;

	for (size_t i = 0; i < c->n_exports && i < SETUP_MAX_DESTINATIONS; i++) {
		const struct config_export *x = &c->exports[i];

		s.destinations[s.n++] = (struct setup_destination){
			.timeout_ns = x->timeout_ns,
			.max_queue_bytes = x->max_queue_bytes,
			.max_elapsed_ns = x->max_elapsed_ns,
			.max_request_bytes = x->max_request_bytes,
			.protocol = protocols[x->protocol],
			.encoding = encodings[x->compression],
			.dialect = dialects[x->preset],
			.insecure_skip_verify = x->insecure_skip_verify,
		};
	}
	to = setup_begin(control, &s, sizeof(s), status_fd);
	setup_put_proxies(&to);
	if (spool_fd >= 0)
		setup_put_file(&to, TEXT_SPOOL, b->spool.path, spool_fd);
	if (store_fd >= 0)
		setup_put_file(&to, TEXT_STORE, b->store.path, store_fd);
	for (uint32_t i = 0; i < s.n; i++)
		send_destination(&to, &c->exports[i]);
	return setup_finish(&to);
}

int broker_set_up_screen(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	struct setup_screen s;
	struct setup_sender to;

	if (!b->options.screen)
		return -EINVAL;
	s = *b->options.screen;
	s.common = broker_common_setup(b, PEER_SCREEN);
	s.n_cpus = b->events[0].cpus.n;
	s.rate_hz = b->events[0].sample.rate_hz;
	to = setup_begin(control, &s, sizeof(s), status_fd);
	send_host_facts(&to);
	return setup_finish(&to);
}

int broker_set_up_metrics(void *ctx, struct peer_id who, int control, int status_fd)
{
	const struct broker *b = ctx;
	const struct config *c = b->options.config;
	struct setup_metrics s = {.common = broker_common_setup(b, PEER_METRICS),
				  .profile_bytes = BROKER_PULL_BYTES,
				  .n_cpus = b->events[0].cpus.n};
	struct setup_sender to;

	if (b->metrics.fd < 0)
		return -EINVAL;
	to = setup_begin(control, &s, sizeof(s), status_fd);
	setup_put_file(&to, TEXT_LISTEN, c->metrics_listen, b->metrics.fd);
	send_host_facts(&to);
	for (size_t i = 0; i < c->n_exports && i < STATUS_MAX_DESTINATIONS; i++)
		setup_put_text(&to, TEXT_EXPORT_NAME, c->exports[i].name);
	return setup_finish(&to);
}

static void send_urls(struct setup_sender *to, const char *urls)
{
	_cleanup_free_ char *copy = strdup(urls);
	char *state = NULL, *url;

	if (!copy) {
		to->result = -ENOMEM;
		return;
	}
	url = strtok_r(copy, " \t", &state);
	for (int n = 0; url && n < CONFIG_DEBUGINFOD_MAX_URLS; n++) {
		setup_put_text(to, TEXT_DEBUGINFOD, url);
		url = strtok_r(NULL, " \t", &state);
	}
}

int broker_set_up_fetcher(void *ctx, struct peer_id who, int control, int status_fd)
{
	const struct broker *b = ctx;
	const struct config *c = b->options.config;
	struct setup_fetcher s = {
		.common = broker_common_setup(b, PEER_FETCHER),
		.cache_bytes = c->debuginfod_cache_bytes,
		.max_file_bytes = c->debuginfod_max_file_bytes,
		.timeout_ns = c->debuginfod_timeout_ns,
	};
	struct setup_sender to;

	if (b->debug_cache.fd < 0 || !c->debuginfod_urls)
		return -EINVAL;
	to = setup_begin(control, &s, sizeof(s), status_fd);
	setup_put_proxies(&to);
	setup_put_file(&to, TEXT_DEBUG_CACHE, b->debug_cache.path, b->debug_cache.fd);
	send_urls(&to, c->debuginfod_urls);
	return setup_finish(&to);
}

void broker_tell_symbolizer_config(struct broker *b)
{
	int control = supervisor_control(b->supervisor, peer_only(PEER_SYMBOLIZER));
	struct setup_sender to;
	int r;

	if (!supervisor_running(b->supervisor, peer_only(PEER_SYMBOLIZER)))
		return;
	to = begin_symbolizer(b, control, -1);
	r = setup_finish(&to);
	if (r < 0)
		log_warning("the symbolizer cannot be sent the new config");
	/* With its next start it gets that. */
	supervisor_sent(b->supervisor, peer_only(PEER_SYMBOLIZER), r);
}
