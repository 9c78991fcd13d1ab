/* SPDX-License-Identifier: Apache-2.0 */
/* What each child is told at its start: one struct of numbers, then texts and descriptors. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "src/broker/cloud.h"
#include "src/broker/filter-texts.h"
#include "src/broker/internal.h"
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
	return supervisor_send(b->supervisor, peer_only(PEER_PROFILER), &m, &c->events.event_fd, 1);
}

static int send_filter(void *ctx, const char *text)
{
	return setup_send_text(*(const int *)ctx, TEXT_FILTER, text, -1);
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
static int send_kernel(int control)
{
	_cleanup_close_ int kallsyms = open_kallsyms();
	_cleanup_close_ int notes = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	int r = 0;

	if (kallsyms >= 0)
		r = setup_send_text(control, TEXT_KALLSYMS, "/proc/kallsyms", kallsyms);
	if (r == 0 && notes >= 0)
		r = setup_send_text(control, TEXT_KERNEL_NOTES, "/sys/kernel/notes", notes);
	return r;
}

/*
 * The input of a conversion. A second profiler would read the file again from the start, and the
 * symbolizer has a part of it already: who dies of a file ends the conversion.
 */
static int send_input(struct broker *b, int control)
{
	int r;

	if (supervisor_starts(b->supervisor, peer_only(PEER_PROFILER)) > 1) {
		log_error("%s cannot be converted: the process that read it, or a file it names, "
			  "died",
			  b->options.input_path);
		b->state = BROKER_STOPPING;
		b->result = -EBADMSG;
		supervisor_kill_all(b->supervisor);
		return -EBADMSG;
	}
	r = send_kernel(control);
	if (r == 0)
		r = setup_send_text(control, TEXT_EVENT, b->options.input_event, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_INPUT, b->options.input_path,
				    b->options.input_fd);
	return r;
}

static int send_cpus(const struct broker *b, const struct events *e)
{
	int r = 0;

	for (uint32_t i = 0; i < e->cpus.n && r == 0; i++)
		r = broker_send_cpu(b, &e->cpus.items[i], false);
	return r;
}

/* Which resource attributes may leave the host. */
static int send_attribute_rules(const struct config *c, int control)
{
	int r = setup_send_text(control, TEXT_ALLOW, c->attributes_allow ? c->attributes_allow : "",
				-1);

	return r < 0 ? r
		     : setup_send_text(control, TEXT_DENY,
				       c->attributes_deny ? c->attributes_deny : "", -1);
}

int broker_set_up_profiler(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	const struct config *c = b->options.config;
	struct setup_profiler s = {
		.common = broker_common_setup(b, PEER_PROFILER),
		.n_events = b->options.n_events,
		.of_tasks = b->options.n_pids > 0,
		.interval_ns = b->options.interval_ns,
		.window_memory_bytes = c->window_memory_bytes,
		.unwind_rows_bytes = c->unwind_rows_bytes,
		.max_processes = c->max_processes,
		.max_open_files = broker_files_of_profiler(b),
		.max_frames = c->max_frames,
		.capture = b->options.capture,
		.paused = b->paused,
		.adapt_stack_size = b->adapt_stack_size,
		.interpreters = c->interpreters && !b->options.input_path,
	};
	int r = 0;

	for (uint32_t i = 0; i < s.n_events; i++) {
		s.events[i].options = b->events[i].sample;
		s.events[i].options.filter = NULL; /* an address here means nothing there */
		s.events[i].options.event.uprobe = NULL;
		s.events[i].features = b->events[i].features;
	}
	r = setup_send(control, &s, sizeof(s), status_fd);
	/* Groups that the kernel picks out need not be picked out again. */
	if (r == 0)
		r = filter_texts_each(c, b->n_cgroups == 0, send_filter, &control);
	if (r == 0)
		r = send_attribute_rules(c, control);
	if (r == 0 && b->options.input_path)
		r = send_input(b, control);
	if (r == 0 && b->ledger)
		r = setup_send_text(control, TEXT_LEDGER, "", b->ledger_fd);
	if (r == 0)
		r = setup_send_start(control);
	for (uint32_t i = 0; i < s.n_events && r == 0; i++)
		r = send_cpus(b, &b->events[i]);
	return r;
}

static int send_host_facts(int control)
{
	struct utsname u;
	char id[64];
	int r = 0;

	if (!*cloud_host_id(id, sizeof(id)))
		(void)cloud_read_line("/etc/machine-id", id, sizeof(id));
	if (uname(&u) == 0) {
		r = setup_send_text(control, TEXT_HOST_NAME, u.nodename, -1);
		if (r == 0)
			r = setup_send_text(control, TEXT_KERNEL_RELEASE, u.release, -1);
	}
	if (r == 0 && id[0])
		r = setup_send_text(control, TEXT_HOST_ID, id, -1);
	return r;
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
static int send_cloud(const struct config *c, int control)
{
	static const char key[] = "cloud.provider";
	const char *provider = cloud_provider();
	int r;

	if (!provider || !globs_allow(c->attributes_allow, c->attributes_deny, key))
		return 0;
	for (size_t i = 0; i < c->n_resource; i++) {
		if (strcmp(c->resource[2 * i], key) == 0)
			return 0;
	}
	r = setup_send_text(control, TEXT_RESOURCE, key, -1);
	return r < 0 ? r : setup_send_text(control, TEXT_RESOURCE, provider, -1);
}

/* What a reload may change: sent at the start, and again to a running symbolizer (status_fd -1). */
static int send_symbolizer_config(struct broker *b, int control, int status_fd)
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
		.lost = b->custody.lost,
		.lost_counted = b->custody.counted,
		.capture = b->options.capture,
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
	int r;

	if (b->options.view) {
		s.view = b->options.view->view;
		s.report = b->options.view->report;
		s.hide_native = b->options.view->hide_native;
	}
	r = setup_send(control, &s, sizeof(s), status_fd);
	if (r == 0)
		r = setup_send_text(control, TEXT_SERVICE_NAME,
				    c->service_name ? c->service_name : "", -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_REDUCED,
				    statistics_reduced(reduced, text, sizeof(text)), -1);
	if (r == 0)
		r = send_attribute_rules(c, control);
	if (r == 0 && !b->options.input_path)
		r = send_cloud(c, control);
	for (size_t i = 0; i < 2 * c->n_resource && r == 0; i++)
		r = setup_send_text(control, TEXT_RESOURCE, c->resource[i], -1);
	return r;
}

int broker_set_up_symbolizer(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	int r = send_symbolizer_config(b, control, status_fd);

	if (r == 0)
		r = send_kernel(control);
	/* A file may be of another host than this one. */
	if (r == 0 && !b->options.input_path)
		r = send_host_facts(control);
	if (r == 0)
		r = setup_send_text(control, TEXT_TITLE, b->options.title, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_SYMBOL, b->options.view_symbol, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_COMM, b->options.view_comm, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_CONTAINER, b->options.view_container, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_SERVICE, b->options.view_service, -1);
	for (uint32_t i = 0; i < b->options.n_outputs && r == 0; i++) {
		const struct broker_output *o = &b->options.outputs[i];

		r = setup_send_text(control, TEXT_OUTPUT_FORMAT, o->format, -1);
		if (r == 0)
			r = setup_send_text(control, TEXT_OUTPUT, o->path, o->fd);
	}
	if (r == 0 && b->options.summary_fd >= 0)
		r = setup_send_text(control, TEXT_SUMMARY, "standard output",
				    b->options.summary_fd);
	return r < 0 ? r : setup_send_start(control);
}

static int send_destination(int control, const struct config_export *x)
{
	int r = setup_send_text(control, TEXT_EXPORT_NAME, x->name, -1);

	if (r == 0)
		r = setup_send_text(control, TEXT_EXPORT_ENDPOINT, x->endpoint, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_EXPORT_PROFILES_ENDPOINT, x->profiles_endpoint,
				    -1);
	for (size_t i = 0; i < x->n_headers && r == 0; i++)
		r = setup_send_text(control, TEXT_EXPORT_HEADER, x->headers[i], -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_EXPORT_CERTIFICATE, x->certificate, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_EXPORT_CLIENT_CERTIFICATE, x->client_certificate,
				    -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_EXPORT_CLIENT_KEY, x->client_key, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_EXPORT_SERVER_NAME, x->server_name_override, -1);
	if (r == 0)
		r = setup_send_text(control, TEXT_EXPORT_PROXY, x->proxy, -1);
	return r;
}

int broker_open_state_dir(struct broker *b, struct broker_state_dir *d, const char *path,
			  bool shared, const char *what, const char *instead)
{
	const struct state_owner owner = {b->network.uid, b->network.gid, b->privileges.uid};
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
				     !c->store_enabled && c->n_exports > 0 ? ""
				     : c->store_path			   ? c->store_path
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
	int spool_fd = open_spool(b), store_fd = open_store(b), r;

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
	r = setup_send(control, &s, sizeof(s), status_fd);
	if (r == 0)
		r = setup_send_proxies(control);
	if (r == 0 && spool_fd >= 0)
		r = setup_send_text(control, TEXT_SPOOL, b->spool.path, spool_fd);
	if (r == 0 && store_fd >= 0)
		r = setup_send_text(control, TEXT_STORE, b->store.path, store_fd);
	for (uint32_t i = 0; i < s.n && r == 0; i++)
		r = send_destination(control, &c->exports[i]);
	return r < 0 ? r : setup_send_start(control);
}

int broker_set_up_screen(void *ctx, struct peer_id who, int control, int status_fd)
{
	struct broker *b = ctx;
	struct setup_screen s;
	int r;

	if (!b->options.screen)
		return -EINVAL;
	s = *b->options.screen;
	s.common = broker_common_setup(b, PEER_SCREEN);
	s.n_cpus = b->events[0].cpus.n;
	r = setup_send(control, &s, sizeof(s), status_fd);
	if (r == 0)
		r = send_host_facts(control);
	return r < 0 ? r : setup_send_start(control);
}

int broker_set_up_metrics(void *ctx, struct peer_id who, int control, int status_fd)
{
	const struct broker *b = ctx;
	const struct config *c = b->options.config;
	struct setup_metrics s = {.common = broker_common_setup(b, PEER_METRICS),
				  .profile_bytes = BROKER_PULL_BYTES,
				  .n_cpus = b->events[0].cpus.n};
	int r;

	if (b->metrics.fd < 0)
		return -EINVAL;
	r = setup_send(control, &s, sizeof(s), status_fd);
	if (r == 0)
		r = setup_send_text(control, TEXT_LISTEN, c->metrics_listen, b->metrics.fd);
	if (r == 0)
		r = send_host_facts(control);
	for (size_t i = 0; i < c->n_exports && i < STATUS_MAX_DESTINATIONS && r == 0; i++)
		r = setup_send_text(control, TEXT_EXPORT_NAME, c->exports[i].name, -1);
	return r < 0 ? r : setup_send_start(control);
}

static int send_urls(int control, const char *urls)
{
	_cleanup_free_ char *copy = strdup(urls);
	char *state = NULL, *url;
	int r = copy ? 0 : -ENOMEM;

	url = copy ? strtok_r(copy, " \t", &state) : NULL;
	for (int n = 0; url && r == 0 && n < CONFIG_DEBUGINFOD_MAX_URLS; n++) {
		r = setup_send_text(control, TEXT_DEBUGINFOD, url, -1);
		url = strtok_r(NULL, " \t", &state);
	}
	return r;
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
	int r;

	if (b->debug_cache.fd < 0 || !c->debuginfod_urls)
		return -EINVAL;
	r = setup_send(control, &s, sizeof(s), status_fd);
	if (r == 0)
		r = setup_send_proxies(control);
	if (r == 0)
		r = setup_send_text(control, TEXT_DEBUG_CACHE, b->debug_cache.path,
				    b->debug_cache.fd);
	if (r == 0)
		r = send_urls(control, c->debuginfod_urls);
	return r < 0 ? r : setup_send_start(control);
}

void broker_tell_symbolizer_config(struct broker *b)
{
	int control = supervisor_control(b->supervisor, peer_only(PEER_SYMBOLIZER)), r;

	if (!supervisor_running(b->supervisor, peer_only(PEER_SYMBOLIZER)))
		return;
	r = send_symbolizer_config(b, control, -1);
	if (r == 0)
		r = setup_send_start(control);
	if (r < 0)
		log_warning("the symbolizer does not accept the new config");
}
