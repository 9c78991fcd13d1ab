/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/config/reader.h"
#include "src/config/table.h"
#include "tests/unit/test.h"
#include "util/clock.h"

static char dir[] = "/tmp/test-config.XXXXXX";

static const char *path_of(const char *name)
{
	static char path[4][128];
	static unsigned int next;
	char *p = path[next++ % 4];

	(void)snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static const char *write_bytes(const char *name, const void *data, size_t n)
{
	const char *path = path_of(name);
	FILE *f = fopen(path, "w");

	CHECK(f);
	CHECK_INT(fwrite(data, 1, n, f), ==, n);
	CHECK_INT(fclose(f), ==, 0);
	CHECK_INT(chmod(path, 0644), ==, 0);
	return path;
}

static const char *write_file(const char *name, const char *text)
{
	return write_bytes(name, text, strlen(text));
}

/* Loads and gives what was written to errors, without the directory's name. */
static int load(struct config **ret, const char *path, bool env, char **ret_errors)
{
	char *text = NULL, *at;
	size_t n = 0, prefix = strlen(dir) + 1;
	FILE *errors = open_memstream(&text, &n);
	int r;

	CHECK(errors);
	r = config_load(ret, path, env, errors);
	CHECK_INT(fclose(errors), ==, 0);
	while ((at = strstr(text, dir)))
		memmove(at, at + prefix, strlen(at + prefix) + 1);
	*ret_errors = text;
	return r;
}

static struct config *load_ok(const char *text)
{
	_cleanup_free_ char *errors = NULL;
	struct config *c = NULL;
	int r = load(&c, write_file("a.conf", text), false, &errors);

	CHECK_STR(errors, "");
	CHECK_INT(r, ==, 0);
	return c;
}

static struct config *load_env(const char *text)
{
	_cleanup_free_ char *errors = NULL;
	struct config *c = NULL;
	int r = load(&c, text ? write_file("a.conf", text) : NULL, true, &errors);

	CHECK_STR(errors, "");
	CHECK_INT(r, ==, 0);
	return c;
}

static void expect_errors(const char *text, const char *errors_wanted)
{
	_cleanup_free_ char *errors = NULL;
	struct config *c = NULL;
	int r = load(&c, write_file("a.conf", text), false, &errors);

	CHECK_STR(errors, errors_wanted);
	CHECK_INT(r, ==, -EINVAL);
	CHECK(!c);
}

static char *printed(const struct config *c)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (c)
		config_print(c, f);
	else
		config_print_default(f);
	CHECK_INT(fclose(f), ==, 0);
	return text;
}

static void test_defaults(void)
{
	_cleanup_(config_freep) struct config *c = load_env(NULL);

	CHECK_INT(c->samples_per_second, ==, 19);
	CHECK_INT(c->reporter_interval_ns, ==, 10 * NSEC_PER_SEC);
	CHECK_INT(c->stack_size_bytes, ==, 0);
	CHECK_INT(c->ring_size_bytes, ==, 2 << 20);
	CHECK(c->kernel_stacks);
	CHECK_INT(c->max_frames, ==, 1024);
	CHECK_INT(c->window_memory_bytes, ==, 32 << 20);
	CHECK_INT(c->unwind_rows_bytes, ==, 8 << 20);
	CHECK_INT(c->symbols_bytes, ==, 32 << 20);
	CHECK_INT(c->symbolizer_memory_bytes, ==, 1 << 30);
	CHECK_INT(c->symbolizer_file_timeout_ns, ==, 3 * NSEC_PER_SEC);
	CHECK_INT(c->max_processes, ==, 65536);
	CHECK_INT(c->max_open_files, ==, 1024);
	CHECK_STR(c->user, "perfwalk");
	CHECK(c->spool_enabled);
	CHECK(!c->spool_path);
	CHECK_INT(c->spool_max_bytes, ==, 256 << 20);
	CHECK_INT(c->spool_max_age_ns, ==, 24 * 3600 * NSEC_PER_SEC);
	CHECK_INT(c->log_level, ==, LOG_LEVEL_INFO);
	CHECK_INT(c->n_exports, ==, 0);
	CHECK_INT(c->n_resource, ==, 0);
	CHECK(!c->service_name);
}

static void test_types(void)
{
	_cleanup_(config_freep) struct config *c =
		load_ok("\xef\xbb\xbf# comment ; with = signs\r\n"
			"; another\n"
			"   [profiler]  \r\n"
			"\tsamples_per_second\t=  97 \r\n"
			"reporter_interval=1500ms\n"
			"stack_size = 65528\n"
			"ring_size = 4MiB\n"
			"kernel_stacks = off\n"
			"max_frames = 16\n"
			"[limits]\nwindow_memory = 1.5M\nsymbolizer_file_timeout = 250ms\n"
			"[process]\nuser = nobody\n"
			"[resource]\n"
			"service.name = all of it\n"
			"k8s.pod.label.app/name = a ; b # c = d\n"
			"host.name = x\n"
			"[log]\nlevel = debug\n"
			"[profiler]\n# the same section again\n"
			"[export:one]\n"
			"endpoint = https://[::1]:4318/base\n"
			"headers = authorization=Basic%20YTpi%3D, X-Scope-OrgID = 7 ,,a=b=c%2Cd\n"
			"headers_file = /etc/secret\n"
			"compression = none\n"
			"timeout = 2s\n"
			"certificate = /a b/ca.pem\nclient_certificate=/c\nclient_key=/k\n"
			"insecure_skip_verify = TRUE\n"
			"max_queue_size = 2M\n"
			"max_elapsed_time = 0\n"
			"[export:two]\n"
			"profiles_endpoint = http://h/x?y=z\n");
	const struct config_export *x = c->exports;

	CHECK_INT(c->samples_per_second, ==, 97);
	CHECK_INT(c->reporter_interval_ns, ==, 1500 * NSEC_PER_MSEC);
	CHECK_INT(c->stack_size_bytes, ==, 65528);
	CHECK_INT(c->ring_size_bytes, ==, 4 << 20);
	CHECK(!c->kernel_stacks);
	CHECK_INT(c->max_frames, ==, 16);
	CHECK_INT(c->window_memory_bytes, ==, 3 << 19);
	CHECK_INT(c->symbolizer_file_timeout_ns, ==, 250 * NSEC_PER_MSEC);
	CHECK_STR(c->user, "nobody");
	CHECK_INT(c->log_level, ==, LOG_LEVEL_DEBUG);
	CHECK_STR(c->service_name, "all of it");
	CHECK_INT(c->n_resource, ==, 2);
	CHECK_STR(c->resource[0], "k8s.pod.label.app/name");
	CHECK_STR(c->resource[1], "a ; b # c = d");
	CHECK_STR(c->resource[2], "host.name");
	CHECK_STR(c->resource[3], "x");

	CHECK_INT(c->n_exports, ==, 2);
	CHECK_STR(x->name, "one");
	CHECK_STR(x->endpoint, "https://[::1]:4318/base");
	CHECK(!x->profiles_endpoint);
	CHECK_INT(x->n_headers, ==, 3);
	CHECK_STR(x->headers[0], "authorization: Basic YTpi=");
	CHECK_STR(x->headers[1], "X-Scope-OrgID: 7");
	CHECK_STR(x->headers[2], "a: b=c,d");
	CHECK_STR(x->headers_file, "/etc/secret");
	CHECK_INT(x->compression, ==, CONFIG_NONE);
	CHECK_INT(x->timeout_ns, ==, 2 * NSEC_PER_SEC);
	CHECK_STR(x->certificate, "/a b/ca.pem");
	CHECK_STR(x->client_certificate, "/c");
	CHECK_STR(x->client_key, "/k");
	CHECK(x->insecure_skip_verify);
	CHECK_INT(x->max_queue_bytes, ==, 2 << 20);
	CHECK_INT(x->max_elapsed_ns, ==, 0);
	x++;
	CHECK_STR(x->name, "two");
	CHECK_STR(x->profiles_endpoint, "http://h/x?y=z");
	CHECK(x->compression == CONFIG_GZIP && !x->insecure_skip_verify);
	CHECK_INT(x->timeout_ns, ==, 10 * NSEC_PER_SEC);
	CHECK_INT(x->max_queue_bytes, ==, 64 << 20);
	CHECK_INT(x->max_elapsed_ns, ==, 3600 * NSEC_PER_SEC);
}

/* Kept as numbers: a later look-up must not change which users are left out. */
static void test_users(void)
{
	_cleanup_(config_freep) struct config *c =
		load_ok("[filter]\ninclude_user = root , 12\nexclude_user = 007\n");
	char error[600];

	CHECK_STR(c->include[CONFIG_FILTER_USER], "0,12");
	CHECK_STR(c->exclude[CONFIG_FILTER_USER], "7");
	CHECK_INT(config_include(c, CONFIG_FILTER_USER, "13,root", error, sizeof(error)), ==, 0);
	CHECK_STR(c->include[CONFIG_FILTER_USER], "0,12,13,0");
	CHECK_INT(config_include(c, CONFIG_FILTER_USER, "no-such-user", error, sizeof(error)), ==,
		  -EINVAL);
	CHECK_STR(error, "expected names or numbers of users of this host");
	CHECK_STR(c->include[CONFIG_FILTER_USER], "0,12,13,0");
	expect_errors("[filter]\ninclude_user = root, no-such-user\n",
		      "a.conf:2: include_user: expected names or numbers of users of this host, "
		      "not 'root, no-such-user'\n");
	expect_errors("[filter]\nexclude_user = ,\n",
		      "a.conf:2: exclude_user: expected at least one name, not ','\n");
}

/* inih's line limit must not show: every length around it, and a long one, byte for byte. */
static void test_long_lines(void)
{
	static char text[70000], value[66000];

	for (size_t n = 150; n <= 620; n++) {
		_cleanup_(config_freep) struct config *c = NULL;

		for (size_t i = 0; i < n; i++)
			value[i] = " ;#=:\t%ab["[i % 10];
		value[0] = ';';
		value[n - 1] = ']';
		value[n] = '\0';
		(void)snprintf(text, sizeof(text), "[resource]\nk = %s\nafter = 1\n", value);
		c = load_ok(text);
		CHECK_INT(c->n_resource, ==, 2);
		CHECK_STR(c->resource[1], value);
		CHECK_STR(c->resource[3], "1");
	}
	for (size_t i = 0; i < 10240; i++)
		value[i] = (char)('!' + i * 7 % 90);
	value[0] = 'x';
	value[3000] = value[6000] = value[9000] = ',';
	value[10239] = 'x';
	value[10240] = '\0';
	(void)snprintf(text, sizeof(text), "[filter]\ninclude_comm = %s\n[log]\nlevel = warning",
		       value);
	{
		_cleanup_(config_freep) struct config *c = load_ok(text);

		CHECK_STR(c->include[CONFIG_FILTER_COMM], value);
		CHECK_INT(c->log_level, ==, LOG_LEVEL_WARNING);
	}
	memset(value, 'y', 65600);
	value[65600] = '\0';
	(void)snprintf(text, sizeof(text), "[resource]\nk = %s\nj = %s\n[log]\nlevel = x\n", value,
		       "z");
	expect_errors(text, "a.conf:2: the line is longer than 64 KiB\n"
			    "a.conf:5: level: expected error, warning, info or debug, not 'x'\n");
}

static void test_continuation(void)
{
	_cleanup_(config_freep) struct config *c = load_ok("[export:a]\n"
							   "headers = a=1, \\\n"
							   "   # a comment in between\n"
							   "\tb=2,\\\r\n"
							   "  c=3\n"
							   "endpoint = \\\n"
							   " http://h\n"
							   "[resource]\n"
							   "x = one \\\n"
							   "\n"
							   "  y = two\n");

	CHECK_INT(c->exports[0].n_headers, ==, 3);
	CHECK_STR(c->exports[0].headers[1], "b: 2");
	CHECK_STR(c->exports[0].headers[2], "c: 3");
	CHECK_STR(c->exports[0].endpoint, "http://h");
	CHECK_STR(c->resource[1], "one");
	CHECK_STR(c->resource[3], "two");
	expect_errors("[log]\n\nlevel = \\\n  \\\n bad\nx=1\n",
		      "a.conf:3: level: expected error, warning, info or debug, not 'bad'\n"
		      "a.conf:6: unknown key x in [log]; perfwalk.conf(5) lists all keys\n");
	expect_errors("[log]\nlevel = info \\\n",
		      "a.conf:2: the file ends after a \\ that announces another line\n");
}

static void test_form_errors(void)
{
	static const char with_nul[] = "[log]\nlevel = in\0fo\n";
	_cleanup_free_ char *errors = NULL;
	struct config *c = NULL;

	expect_errors("level = info\n"
		      "nonsense\n"
		      "[log\n"
		      "[]\n"
		      "[export:a b]\n"
		      "[log] x\n"
		      "= 1\n"
		      "a:b = 1\n"
		      "[012345678901234567890123456789012345678901234567890]\n"
		      "012345678901234567890123456789012345678901234567890 = 1\n"
		      "[log]\n"
		      "level = in\001fo\n"
		      "level = info",
		      "a.conf:1: level: before the first [section]\n"
		      "a.conf:2: expected [section], key = value, or a comment\n"
#define BAD_SECTION                                                                                \
	"expected [section] or [section:name] with a name of at most 48 letters, digits and . _ "  \
	"- "                                                                                       \
	"characters\n"
#define BAD_KEY                                                                                    \
	"expected key = value with a key of at most 48 letters, digits and . _ - / characters\n"
		      "a.conf:3: " BAD_SECTION "a.conf:4: " BAD_SECTION "a.conf:5: " BAD_SECTION
		      "a.conf:6: " BAD_SECTION "a.conf:7: " BAD_KEY "a.conf:8: " BAD_KEY
		      "a.conf:9: " BAD_SECTION "a.conf:10: " BAD_KEY
		      "a.conf:12: the value has a control character in it\n");
	CHECK_INT(load(&c, write_bytes("a.conf", with_nul, sizeof(with_nul) - 1), false, &errors),
		  ==, -EINVAL);
	CHECK_STR(errors, "a.conf:2: the file holds a 0 byte: not a text file\n");
}

static void test_events(void)
{
	_cleanup_(config_freep) struct config *c =
		load_ok("[event:page-faults]\nperiod = 100\nkernel = no\n"
			"[event:sched:sched_switch]\nuser = no\nfilter = prev_state == 2\n"
			"event = sched:sched_switch\n"
			"[event:page-faults]\nstack_size = 8K\n");
	_cleanup_free_ char *text = printed(c), *again = NULL;
	_cleanup_(config_freep) struct config *d = load_ok(text);

	CHECK_INT(c->n_events, ==, 2);
	CHECK_STR(c->events[0].name, "page-faults");
	CHECK_INT(c->events[0].period, ==, 100);
	CHECK_INT(c->events[0].samples_per_second, ==, 0);
	CHECK_INT(c->events[0].stack_size_bytes, ==, 8192);
	CHECK(c->events[0].user && !c->events[0].kernel);
	CHECK_STR(c->events[1].name, "sched:sched_switch");
	CHECK(!c->events[1].user && c->events[1].kernel);
	CHECK_STR(c->events[1].filter, "prev_state == 2");
	CHECK_STR(c->events[1].event, "sched:sched_switch");
	CHECK(!c->events[0].filter && !c->events[0].event);
	CHECK_INT(c->events[1].period, ==, 0);
	CHECK_INT(c->events[1].stack_size_bytes, ==, 0);
	again = printed(d);
	CHECK_STR(again, text);
}

static void test_event_errors(void)
{
	expect_errors("[event]\nperiod = 1\n[event:]\n[event:a]\nperiods = 2\n"
		      "samples_per_second = 2000\nreporter_interval = 1s\n[evnt:b]\n"
		      "[profiler]\nperiod = 3\n",
		      "a.conf:1: [event]: an event needs a name: [event:NAME]\n"
		      "a.conf:3: [event:]: an event needs a name: [event:NAME]\n"
		      "a.conf:5: unknown key periods in [event:a]; did you mean period?\n"
		      "a.conf:6: samples_per_second: expected a whole number; 0 .. 1000, not "
		      "'2000'\n"
		      "a.conf:7: unknown key reporter_interval in [event:a]; it belongs in "
		      "[profiler]\n"
		      "a.conf:8: unknown section [evnt:b]; did you mean [event:b]?\n"
		      "a.conf:10: unknown key period in [profiler]; it belongs in [event:NAME]\n");
	expect_errors("[event:a]\nsamples_per_second = 9\nperiod = 9\n"
		      "[event:b]\nuser = no\nkernel = no\n",
		      "a.conf: [event:a]: samples_per_second and period exclude each other: a rate "
		      "or a period\n"
		      "a.conf: [event:b]: user and kernel are both no, so there is nothing to "
		      "sample: leave one of them out\n");
	expect_errors("[event:a]\n[event:b]\n[event:c]\n[event:d]\n[event:e]\n[event:a]\n"
		      "[event:f]\n",
		      "a.conf:7: [event:f]: too many events: at most 5\n");
}

static void test_sections_with_names(void)
{
	expect_errors("[exprot:b]\nendpoint = http://h\n[expor:]\n[profilr:x]\n[store:x]\n[no:x]\n",
		      "a.conf:1: unknown section [exprot:b]; did you mean [export:b]?\n"
		      "a.conf:3: unknown section [expor:]; did you mean [export:NAME]?\n"
		      "a.conf:4: unknown section [profilr:x]; did you mean [profiler]?\n"
		      "a.conf:5: unknown section [store:x]; did you mean [store]?\n"
		      "a.conf:6: unknown section [no:x]\n");
}

static void test_names(void)
{
	expect_errors(
		"[profilr]\nsamples_per_second = 19\n"
		"[exports]\n"
		"[export]\n"
		"[export:]\n"
		"[something]\n"
		"[profiler]\n"
		"sample_per_second = 19\n"
		"endpoint = http://h\n"
		"symbols = 1M\n"
		"colour = red\n"
		"max_frames = 20\n"
		"[limits]\n"
		"max_frame = 20\n"
		"[profiler]\n"
		"max_frames = 30\n"
		"[export:a]\n"
		"endpoints = http://h\n",
		"a.conf:1: unknown section [profilr]; did you mean [profiler]?\n"
		"a.conf:3: unknown section [exports]; did you mean [export:NAME]?\n"
		"a.conf:4: [export]: a destination needs a name: [export:NAME]\n"
		"a.conf:5: [export:]: a destination needs a name: [export:NAME]\n"
		"a.conf:6: unknown section [something]\n"
		"a.conf:8: unknown key sample_per_second in [profiler]; did you mean "
		"samples_per_second?\n"
		"a.conf:9: unknown key endpoint in [profiler]; it belongs in [export:NAME]\n"
		"a.conf:10: unknown key symbols in [profiler]; it belongs in [limits]\n"
		"a.conf:11: unknown key colour in [profiler]; perfwalk.conf(5) lists all keys\n"
		"a.conf:14: unknown key max_frame in [limits]; perfwalk.conf(5) lists all keys\n"
		"a.conf:16: max_frames: already set in line 12\n"
		"a.conf:18: unknown key endpoints in [export:a]; did you mean endpoint?\n");
}

/* One bad value each: key's section, line, and what the message must say. */
static void test_values(void)
{
	static const struct {
		const char *section, *line, *message;
	} rows[] = {
		{"profiler", "samples_per_second = 0",
		 "expected a whole number; 1 .. 1000, not '0'"},
		{"profiler", "samples_per_second = 1001",
		 "expected a whole number; 1 .. 1000, not '1001'"},
		{"profiler", "samples_per_second = 19.5",
		 "expected a whole number; 1 .. 1000, not '19.5'"},
		{"profiler", "samples_per_second = -1",
		 "expected a whole number; 1 .. 1000, not '-1'"},
		{"profiler", "reporter_interval = 999ms", "5m, 1h; 1s .. 1h, not '999ms'"},
		{"profiler", "reporter_interval = 3601", "5m, 1h; 1s .. 1h, not '3601'"},
		{"profiler", "reporter_interval = 1 fortnight", "a duration like 500ms, 10s"},
		{"profiler", "stack_size = 1023", "1K .. 65528, a multiple of 8, not '1023'"},
		{"profiler", "stack_size = 1028", "a multiple of 8, not '1028'"},
		{"profiler", "stack_size = 64K", "not '64K'"},
		{"profiler", "ring_size = 3M", "128K .. 1G, a power of two, not '3M'"},
		{"profiler", "ring_size = 64K", "a power of two, not '64K'"},
		{"profiler", "kernel_stacks = maybe", "expected yes or no, not 'maybe'"},
		{"limits", "window_memory = 99999999999999999999", "expected a size like"},
		{"limits", "cpu = 2",
		 "expected a percentage like 0.5% or 2%; 0.01% .. 100%, not '2'"},
		{"limits", "cpu = 0.001%", "0.01% .. 100%, not '0.001%'"},
		{"limits", "cpu = 101%", "0.01% .. 100%, not '101%'"},
		{"limits", "cpu = 1.%", "a percentage"},
		{"limits", "cpu = .5%", "a percentage"},
		{"limits", "cpu = 0.00001%", "a percentage"},
		{"limits", "cpu = 1e1%", "a percentage"},
		{"limits", "cpu = 2%%", "a percentage"},
		{"limits", "window_memory = lots", "expected a size like"},
		{"process", "user = a b", "expected one word, not 'a b'"},
		{"spool", "enabled = perhaps", "expected yes or no, not 'perhaps'"},
		{"spool", "path = spool", "expected an absolute path, not 'spool'"},
		{"spool", "max_bytes = 1000", "1M .. 1024G, not '1000'"},
		{"spool", "max_age = 366d", "0 .. 8760h, not '366d'"},
		{"log", "level = verbose", "expected error, warning, info or debug, not 'verbose'"},
		{"export:a", "endpoint = localhost:4318", "begins with http:// or https://"},
		{"export:a", "endpoint = ftp://h", "begins with http:// or https://"},
		{"export:a", "endpoint = http://", "a host name or address"},
		{"export:a", "endpoint = http://:80", "a host name or address"},
		{"export:a", "endpoint = http://h/?q", "without ?query"},
		{"export:a", "endpoint = http://h h/", "without blanks"},
		{"export:a", "profiles_endpoint = http://h/#f", "without #fragment"},
		{"export:a", "headers = a", "name=value pairs"},
		{"export:a", "headers = a=%4", "two hexadecimal digits"},
		{"export:a", "headers = a=%zz", "two hexadecimal digits"},
		{"export:a", "headers = a=%00", "two hexadecimal digits"},
		{"export:a", "headers = =b", "name=value pairs"},
		{"export:a", "headers = a b=c", "a header name"},
		{"export:a", "headers = a=b%0d%0aEvil: c", "without control characters"},
		{"export:a", "headers = content-TYPE=text/plain", "does not set itself"},
		{"export:a", "headers_file = secret", "expected an absolute path, not 'secret'"},
		{"export:a", "preset = jaeger",
		 "expected collector, pyroscope or parca, not 'jaeger'"},
		{"export:a", "proxy = proxy:3128",
		 "expected none, or a URL like http://proxy.example:3128 (http, https, socks5 or "
		 "socks5h), not 'proxy:3128'"},
		{"export:a", "proxy = http://", "expected none, or a URL"},
		{"export:a", "proxy = http://u:secret@proxy",
		 "expected a URL without user and password"},
		{"export:a", "server_name_override = a:443", "expected a host name, without port"},
		{"export:a", "compression = lz4", "expected gzip, zstd or none, not 'lz4'"},
		{"export:a", "timeout = 0", "100ms .. 10m, not '0'"},
		{"export:a", "insecure_skip_verify = 2", "expected yes or no"},
		{"export:a", "max_queue_size = 1K", "1M .. 16G, not '1K'"},
		{"export:a", "max_elapsed_time = 8d", "0 .. 168h, not '8d'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *errors = NULL;
		struct config *c = NULL;
		char text[256], start[64];

		(void)snprintf(text, sizeof(text), "[%s]\n%s\n", rows[i].section, rows[i].line);
		(void)snprintf(start, sizeof(start),
			       "a.conf:2: %.*s: ", (int)strcspn(rows[i].line, " "), rows[i].line);
		CHECK_INT(load(&c, write_file("a.conf", text), false, &errors), ==, -EINVAL);
		if (strncmp(errors, start, strlen(start)) != 0 || !strstr(errors, rows[i].message))
			CHECK_STR(errors, rows[i].message);
	}
}

static void test_secrets_stay(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *errors = NULL, *text = NULL;

	CHECK_INT(load(&c,
		       write_file("a.conf", "[export:a]\nheaders = authorization=hush%2\n"
					    "endpoint = http://user:hush@h\n"),
		       false, &errors),
		  ==, -EINVAL);
	CHECK(!strstr(errors, "hush"));
	CHECK(strstr(errors, "a.conf:2: headers: "));
	CHECK(strstr(errors, "a.conf:3: endpoint: expected a URL without user and password"));

	c = load_ok("[export:a]\nheaders = authorization=hush,b=secret\nendpoint=http://h\n");
	text = printed(c);
	CHECK(strstr(text, "headers = authorization=***,b=***\n"));
	CHECK(!strstr(text, "hush") && !strstr(text, "secret"));
}

static void test_whole_checks(void)
{
	expect_errors(
		"[export:a]\n[export:b]\nendpoint = http://h\nclient_key = /k\n"
		"[export:c]\nendpoint = http://h\nserver_name_override = s\npreset = parca\n",
		"a.conf: [export:a]: endpoint is missing: expected a URL like "
		"http://localhost:4318\n"
		"a.conf: [export:b]: client_certificate and client_key are needed together\n"
		"a.conf: [export:c]: server_name_override is for TLS: expected an endpoint that "
		"begins with https://\n"
		"a.conf: [export:c]: preset = parca needs protocol = grpc, which is all that Parca "
		"takes\n");
}

static void test_bounds(void)
{
	_cleanup_free_ char *many = NULL, *errors = NULL;
	struct config *c = NULL;
	size_t n = 0, lines = 0;
	FILE *f = open_memstream(&many, &n);

	for (int i = 0; i < 17; i++)
		fprintf(f, "[export:e%d]\nendpoint = http://h\n", i);
	fprintf(f, "[resource]\n");
	for (int i = 0; i < 129; i++)
		fprintf(f, "r%d = 1\n", i);
	CHECK_INT(fclose(f), ==, 0);
	expect_errors(many, "a.conf:33: destinations: too many of them\n"
			    "a.conf:164: resource attributes: too many of them\n");

	/* Errors without end are cut; a file without end is refused. */
	f = fopen(write_file("a.conf", "[log]\n"), "a");
	for (int i = 0; i < 5000; i++)
		fprintf(f, "x%d = 1\n", i);
	CHECK_INT(fclose(f), ==, 0);
	CHECK_INT(load(&c, path_of("a.conf"), false, &errors), ==, -EINVAL);
	for (const char *p = errors; *p; p++)
		lines += *p == '\n';
	CHECK_INT(lines, ==, 101);
	CHECK(strstr(errors, "... and 4900 more errors\n"));
	free(TAKE_PTR(errors));
	CHECK_INT(truncate(path_of("a.conf"), CONFIG_FILE_MAX_BYTES + 1), ==, 0);
	CHECK_INT(load(&c, path_of("a.conf"), false, &errors), ==, -EFBIG);
	CHECK_STR(errors, "a.conf: larger than 1024 KiB\n");
}

static void test_files(void)
{
	_cleanup_free_ char *errors = NULL;
	struct config *c = NULL;

	CHECK_INT(load(&c, path_of("missing.conf"), false, &errors), ==, -ENOENT);
	CHECK_STR(errors, "missing.conf: cannot be opened: No such file or directory\n");
	free(TAKE_PTR(errors));

	CHECK_INT(mkfifo(path_of("fifo"), 0600), ==, 0);
	CHECK_INT(load(&c, path_of("fifo"), false, &errors), ==, -EINVAL);
	CHECK_STR(errors, "fifo: not a regular file\n");
	free(TAKE_PTR(errors));

	if (geteuid() == 0) {
		static const mode_t modes[] = {0664, 0646, 0666};

		for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
			CHECK_INT(chmod(write_file("a.conf", "[log]\n"), modes[i]), ==, 0);
			CHECK_INT(load(&c, path_of("a.conf"), false, &errors), ==, -EPERM);
			CHECK(strstr(errors, "a.conf: users other than its owner can write"));
			free(TAKE_PTR(errors));
		}
	}
}

static void test_dropins(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *errors = NULL;

	CHECK_INT(mkdir(path_of("b.conf.d"), 0755), ==, 0);
	write_file("b.conf",
		   "[profiler]\nsamples_per_second = 11\nmax_frames = 100\n[resource]\na = 1\n"
		   "b = 2\n[export:x]\nendpoint = http://one\ntimeout = 3s\n");
	write_file("b.conf.d/20-second.conf",
		   "[profiler]\nsamples_per_second = 13\nmax_frames =\n");
	write_file("b.conf.d/10-first.conf",
		   "[profiler]\nsamples_per_second = 12\n[resource]\na =\n"
		   "[export:x]\nendpoint = http://two\n");
	write_file("b.conf.d/99-not.conf~", "broken");
	write_file("b.conf.d/.hidden.conf", "broken");
	CHECK_INT(load(&c, path_of("b.conf"), false, &errors), ==, 0);
	CHECK_INT(c->samples_per_second, ==, 13);
	CHECK_INT(c->max_frames, ==, 1024);
	CHECK_INT(c->n_resource, ==, 1);
	CHECK_STR(c->resource[0], "b");
	CHECK_INT(c->n_exports, ==, 1);
	CHECK_STR(c->exports[0].endpoint, "http://two");
	CHECK_INT(c->exports[0].timeout_ns, ==, 3 * NSEC_PER_SEC);
	c = config_free(c);
	free(TAKE_PTR(errors));

	/* The file itself need not be there. */
	CHECK(!config_exists(path_of("c.conf")));
	CHECK_INT(mkdir(path_of("c.conf.d"), 0755), ==, 0);
	write_file("c.conf.d/mine.conf", "[profiler]\nsamples_per_second = 14\n");
	CHECK(config_exists(path_of("c.conf")));
	CHECK_INT(load(&c, path_of("c.conf"), false, &errors), ==, 0);
	CHECK_INT(c->samples_per_second, ==, 14);
	c = config_free(c);
	free(TAKE_PTR(errors));

	/* The errors of all files are told. */
	write_file("b.conf.d/30-bad.conf", "\n[log]\nlevel = x\n");
	write_file("b.conf.d/40-bad.conf", "[lag]\n");
	CHECK_INT(load(&c, path_of("b.conf"), false, &errors), ==, -EINVAL);
	CHECK_STR(errors,
		  "b.conf.d/30-bad.conf:3: level: expected error, warning, info or debug, not "
		  "'x'\nb.conf.d/40-bad.conf:1: unknown section [lag]; did you mean [log]?\n");
	free(TAKE_PTR(errors));
	if (geteuid() == 0) {
		CHECK_INT(chmod(path_of("b.conf.d"), 0775), ==, 0);
		CHECK_INT(load(&c, path_of("b.conf"), false, &errors), ==, -EINVAL);
		CHECK(strstr(errors,
			     "b.conf.d: users other than its owner can write this directory"));
	}
}

static void clear_env(void)
{
	static const char *const names[] = {
		"ENDPOINT",    "HEADERS",    "TIMEOUT",	 "COMPRESSION",
		"CERTIFICATE", "CLIENT_KEY", "PROTOCOL", "CLIENT_CERTIFICATE",
		"INSECURE"};
	char name[96];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", names[i]);
		unsetenv(name);
		(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", names[i]);
		unsetenv(name);
	}
	unsetenv("OTEL_RESOURCE_ATTRIBUTES");
	unsetenv("OTEL_SERVICE_NAME");
	unsetenv("DEBUGINFOD_URLS");
}

#define ENV(what, value)	  setenv("OTEL_EXPORTER_OTLP_" what, value, 1)
#define ENV_PROFILES(what, value) setenv("OTEL_EXPORTER_OTLP_PROFILES_" what, value, 1)

static void test_env_alone(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	const struct config_export *x;

	clear_env();
	ENV("ENDPOINT", "http://general:4318/");
	ENV("HEADERS", "a=1,b=%C3%A4");
	ENV("TIMEOUT", "2500");
	ENV("COMPRESSION", "none");
	ENV("CERTIFICATE", "/ca");
	ENV("CLIENT_KEY", "/key");
	ENV("CLIENT_CERTIFICATE", "/cert");
	ENV("PROTOCOL", "http/protobuf");
	setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=low,deployment.environment.name=a%20b%2Cc",
	       1);
	c = load_env(NULL);
	CHECK_INT(c->n_exports, ==, 1);
	x = c->exports;
	CHECK_STR(x->name, "otel");
	CHECK_STR(x->endpoint, "http://general:4318/");
	CHECK(!x->profiles_endpoint);
	CHECK_INT(x->n_headers, ==, 2);
	CHECK_STR(x->headers[1], "b: \xc3\xa4");
	CHECK_INT(x->timeout_ns, ==, 2500 * NSEC_PER_MSEC);
	CHECK_INT(x->compression, ==, CONFIG_NONE);
	CHECK_STR(x->certificate, "/ca");
	CHECK_STR(x->client_key, "/key");
	CHECK_STR(x->client_certificate, "/cert");
	CHECK_STR(c->service_name, "low");
	CHECK_STR(c->resource[0], "deployment.environment.name");
	CHECK_STR(c->resource[1], "a b,c");
	c = config_free(c);

	/* The signal's own variables win, empty ones do not count. */
	ENV_PROFILES("ENDPOINT", "http://own/path");
	ENV_PROFILES("HEADERS", "c=3");
	ENV_PROFILES("TIMEOUT", "");
	ENV_PROFILES("COMPRESSION", "gzip");
	setenv("OTEL_SERVICE_NAME", "high", 1);
	c = load_env(NULL);
	x = c->exports;
	CHECK_STR(x->profiles_endpoint, "http://own/path");
	CHECK_INT(x->n_headers, ==, 1);
	CHECK_STR(x->headers[0], "c: 3");
	CHECK_INT(x->timeout_ns, ==, 2500 * NSEC_PER_MSEC);
	CHECK_INT(x->compression, ==, CONFIG_GZIP);
	CHECK_STR(c->service_name, "high");
	c = config_free(c);

	/* env = false keeps it out altogether; without an endpoint nothing is made. */
	c = load_ok("");
	CHECK_INT(c->n_exports, ==, 0);
	CHECK(!c->service_name);
	c = config_free(c);
	clear_env();
	ENV("HEADERS", "a=1");
	ENV("ENDPOINT", "");
	c = load_env(NULL);
	CHECK_INT(c->n_exports, ==, 0);
	clear_env();
}

static void test_env_and_file(void)
{
	_cleanup_(config_freep) struct config *c = NULL;

	clear_env();
	ENV("ENDPOINT", "http://env");
	ENV("TIMEOUT", "1000");
	setenv("OTEL_RESOURCE_ATTRIBUTES", "a=env", 1);
	setenv("OTEL_SERVICE_NAME", "env", 1);

	/* One destination: its keys are overridden, and what is not set in the environment stays.
	 */
	c = load_env("[export:main]\nendpoint = http://file\nprofiles_endpoint = http://file/x\n"
		     "headers = k=v\n[resource]\na = file\nb = file\nservice.name = file\n");
	CHECK_INT(c->n_exports, ==, 1);
	CHECK_STR(c->exports[0].name, "main");
	CHECK_STR(c->exports[0].endpoint, "http://env");
	CHECK(!c->exports[0].profiles_endpoint);
	CHECK_INT(c->exports[0].timeout_ns, ==, NSEC_PER_SEC);
	CHECK_STR(c->exports[0].headers[0], "k: v");
	CHECK_STR(c->resource[1], "env");
	CHECK_STR(c->resource[3], "file");
	CHECK_STR(c->service_name, "env");
	c = config_free(c);

	/* Several: [export:otel] is the environment's, there or new; the others are left alone. */
	c = load_env("[export:a]\nendpoint=http://a\n[export:otel]\nendpoint=http://b\n");
	CHECK_INT(c->n_exports, ==, 2);
	CHECK_STR(c->exports[0].endpoint, "http://a");
	CHECK_INT(c->exports[0].timeout_ns, ==, 10 * NSEC_PER_SEC);
	CHECK_STR(c->exports[1].endpoint, "http://env");
	c = config_free(c);
	c = load_env("[export:a]\nendpoint=http://a\n[export:b]\nendpoint=http://b\n");
	CHECK_INT(c->n_exports, ==, 3);
	CHECK_STR(c->exports[1].endpoint, "http://b");
	CHECK_STR(c->exports[2].name, "otel");
	CHECK_STR(c->exports[2].endpoint, "http://env");
	clear_env();
}

#define FOUR_URLS "http://a http://b http://c http://d"
#define MANY_URLS FOUR_URLS " " FOUR_URLS " " FOUR_URLS " " FOUR_URLS

static void test_env_debuginfod(void)
{
	static const char text[] = "[debuginfod]\nurls = http://file  https://other/base\n";
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *errors = NULL;

	clear_env();
	c = load_ok("");
	CHECK(!c->debuginfod_urls);
	c = config_free(c);
	c = load_ok(text);
	CHECK_STR(c->debuginfod_urls, "http://file  https://other/base");
	c = config_free(c);

	/* Not of OpenTelemetry, and for captures, too. */
	setenv("DEBUGINFOD_URLS", "ima:enforcing http://env/ ima:ignore\thttps://more", 1);
	c = load_ok(text);
	CHECK_STR(c->debuginfod_urls, "http://env/ https://more");
	c = config_free(c);
	setenv("DEBUGINFOD_URLS", "", 1);
	c = load_ok(text);
	CHECK(!c->debuginfod_urls);
	c = config_free(c);
	setenv("DEBUGINFOD_URLS", "file:///srv http://env", 1);
	CHECK_INT(load(&c, write_file("a.conf", text), true, &errors), ==, 0);
	CHECK_STR(errors, "environment: DEBUGINFOD_URLS: expected a URL that begins with http:// "
			  "or https://; ignored\n");
	CHECK_STR(c->debuginfod_urls, "http://env");
	clear_env();
	expect_errors("[debuginfod]\nurls = http://a ftp://b\n",
		      "a.conf:2: urls: expected a URL that begins with http:// or https://, "
		      "not 'http://a ftp://b'\n");

	/* One more than are asked. */
	c = config_free(c);
	free(errors);
	errors = NULL;
	setenv("DEBUGINFOD_URLS", MANY_URLS " http://last", 1);
	CHECK_INT(load(&c, write_file("a.conf", text), true, &errors), ==, 0);
	CHECK_STR(errors, "environment: DEBUGINFOD_URLS: expected at most 16 URLs; ignored\n");
	CHECK_STR(c->debuginfod_urls, MANY_URLS);
	clear_env();
	c = config_free(c);
	free(errors);
	CHECK_INT(load(&c, write_file("a.conf", "[debuginfod]\nurls = " MANY_URLS " http://last\n"),
		       false, &errors),
		  ==, -EINVAL);
	CHECK(strstr(errors, "a.conf:2: urls: expected at most 16 URLs, not"));
}

#define ENV_FILE                                                                                   \
	"[export:f]\nendpoint = http://file\nprotocol = %s\ncompression = none\ntimeout = 7s\n"    \
	"certificate = /file\nclient_certificate = /file\nclient_key = /file\n"                    \
	"headers = from=file\n"

/* What each variable comes to: over the file, over the general one, and what it cannot be. */
static void test_env_table(void)
{
	static const struct {
		const char *general, *own; /* NULL: unset */
		const char *key, *value;   /* a line of --print-config */
		const char *what, *protocol;
	} rows[] = {
		{NULL, NULL, "endpoint", "http://file", "ENDPOINT", "http/protobuf"},
		{"http://g:1/x", NULL, "endpoint", "http://g:1/x", "ENDPOINT", "http/protobuf"},
		{NULL, "http://p:1/x?y", "profiles_endpoint", "http://p:1/x?y", "ENDPOINT",
		 "http/protobuf"},
		{"http://g", "http://p", "profiles_endpoint", "http://p", "ENDPOINT", "http/json"},
		{"g:4317", NULL, "endpoint", "https://g:4317", "ENDPOINT", "grpc"},
		{"g:4317", "p:4317", "profiles_endpoint", "https://p:4317", "ENDPOINT", "grpc"},
		{"http://g:4317", NULL, "endpoint", "http://g:4317", "ENDPOINT", "grpc"},
		{"grpc", NULL, "protocol", "grpc", "PROTOCOL", "http/protobuf"},
		{"grpc", "http/json", "protocol", "http/json", "PROTOCOL", "http/protobuf"},
		{"grpc", "", "protocol", "grpc", "PROTOCOL", "http/protobuf"},
		{"gRPC", NULL, "protocol", "http/protobuf", "PROTOCOL", "http/protobuf"},
		{"gzip", NULL, "compression", "gzip", "COMPRESSION", "http/protobuf"},
		{"gzip", "none", "compression", "none", "COMPRESSION", "http/protobuf"},
		{"", "snappy", "compression", "none", "COMPRESSION", "http/protobuf"},
		{"2500", NULL, "timeout", "2500ms", "TIMEOUT", "http/protobuf"},
		{"2500", "3000", "timeout", "3s", "TIMEOUT", "http/protobuf"},
		{"-1", NULL, "timeout", "7s", "TIMEOUT", "http/protobuf"},
		{"/g", NULL, "certificate", "/g", "CERTIFICATE", "http/protobuf"},
		{"/g", "/p", "client_certificate", "/p", "CLIENT_CERTIFICATE", "http/protobuf"},
		{"g", "/p", "client_key", "/p", "CLIENT_KEY", "http/protobuf"},
		{"a=1,b=2", NULL, "headers", "a=***,b=***", "HEADERS", "http/protobuf"},
		{"a=1,b=2", "c=3", "headers", "c=***", "HEADERS", "http/protobuf"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(config_freep) struct config *c = NULL;
		_cleanup_free_ char *printed = NULL, *errors = NULL;
		char name[64], text[512], line[128];
		size_t n;
		FILE *f;

		clear_env();
		(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_%s", rows[i].what);
		if (rows[i].general)
			setenv(name, rows[i].general, 1);
		(void)snprintf(name, sizeof(name), "OTEL_EXPORTER_OTLP_PROFILES_%s", rows[i].what);
		if (rows[i].own)
			setenv(name, rows[i].own, 1);
		(void)snprintf(text, sizeof(text), ENV_FILE, rows[i].protocol);
		CHECK_INT(load(&c, write_file("a.conf", text), true, &errors), ==, 0);
		f = open_memstream(&printed, &n);
		CHECK(f);
		config_print(c, f);
		CHECK_INT(fclose(f), ==, 0);
		(void)snprintf(line, sizeof(line), "\n%s = %s\n", rows[i].key, rows[i].value);
		if (!strstr(printed, line))
			CHECK_STR(printed, line);
	}

	/* TLS or not, where the endpoint does not say. */
	for (int i = 0; i < 4; i++) {
		_cleanup_(config_freep) struct config *c = NULL;

		clear_env();
		ENV("PROTOCOL", "grpc");
		ENV("ENDPOINT", "h:4317");
		if (i > 0)
			ENV("INSECURE", i == 1 ? "True" : i == 2 ? "1" : "false");
		if (i == 3)
			ENV_PROFILES("INSECURE", "TRUE");
		c = load_env(NULL);
		CHECK_STR(c->exports[0].endpoint,
			  i == 1 || i == 3 ? "http://h:4317" : "https://h:4317");
	}
	clear_env();
}

static void test_env_bad(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *errors = NULL;

	clear_env();
	ENV("ENDPOINT", "http://h");
	ENV("COMPRESSION", "brotli");
	ENV("PROTOCOL", "http/text");
	ENV("TIMEOUT", "10s");
	ENV("HEADERS", "good=1,hush%2");
	ENV("CERTIFICATE", "relative");
	setenv("OTEL_RESOURCE_ATTRIBUTES", "a=1,b=%xx", 1);
	CHECK_INT(load(&c, NULL, true, &errors), ==, 0);
	CHECK_STR(
		errors,
		"environment: OTEL_RESOURCE_ATTRIBUTES: expected name=value pairs with two "
		"hexadecimal digits after each % of a value (a % itself is %25); ignored\n"
		"environment: OTEL_EXPORTER_OTLP_PROTOCOL: expected http/protobuf, http/json or "
		"grpc; ignored\n"
		"environment: OTEL_EXPORTER_OTLP_COMPRESSION: expected gzip, zstd or none; "
		"ignored\n"
		"environment: OTEL_EXPORTER_OTLP_CERTIFICATE: expected an absolute path; ignored\n"
		"environment: OTEL_EXPORTER_OTLP_HEADERS: expected name=value pairs separated by "
		"commas (a comma in a value is written %2C); ignored\n"
		"environment: OTEL_EXPORTER_OTLP_TIMEOUT: expected a number of milliseconds; "
		"ignored\n");
	CHECK_INT(c->n_exports, ==, 1);
	CHECK_INT(c->exports[0].compression, ==, CONFIG_GZIP);
	CHECK_INT(c->exports[0].timeout_ns, ==, 10 * NSEC_PER_SEC);
	CHECK_INT(c->exports[0].n_headers, ==, 0);
	CHECK_INT(c->n_resource, ==, 0);
	c = config_free(c);
	free(TAKE_PTR(errors));

	clear_env();
	ENV("ENDPOINT", "http://localhost:4317");
	ENV("PROTOCOL", "grpc");
	CHECK_INT(load(&c, NULL, true, &errors), ==, 0);
	CHECK_INT(c->exports[0].protocol, ==, CONFIG_GRPC);
	c = config_free(c);
	free(TAKE_PTR(errors));

	clear_env();
	ENV("ENDPOINT", "localhost:4317");
	CHECK_INT(load(&c, NULL, true, &errors), ==, -EINVAL);
	CHECK_STR(errors,
		  "environment: OTEL_EXPORTER_OTLP_ENDPOINT: expected a URL that begins with "
		  "http:// or https://\n");
	clear_env();
}

static void test_headers_file(void)
{
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *errors = NULL;
	char text[256];
	size_t n;
	FILE *f;

	write_file("headers", "# credentials\r\n\nAuthorization: Bearer a:b, c\r\n  X-A:1\n");
	(void)snprintf(text, sizeof(text),
		       "[export:a]\nendpoint=http://h\nheaders=z=0\nheaders_file=%s\n",
		       path_of("headers"));
	c = load_ok(text);
	CHECK_INT(config_export_read_headers(&c->exports[0], stderr), ==, 0);
	CHECK_INT(c->exports[0].n_headers, ==, 3);
	CHECK_STR(c->exports[0].headers[0], "z: 0");
	CHECK_STR(c->exports[0].headers[1], "Authorization: Bearer a:b, c");
	CHECK_STR(c->exports[0].headers[2], "X-A: 1");

	/* Whoever reads the file can send in our name. */
	for (int i = 0; i < 2; i++) {
		f = open_memstream(&errors, &n);
		CHECK_INT(chmod(path_of("headers"), i ? 0640 : 0644), ==, 0);
		CHECK_INT(config_export_read_headers(&c->exports[0], f), ==, 0);
		CHECK_INT(fclose(f), ==, 0);
		CHECK_INT(strstr(errors,
				 "everybody can read this file with credentials (mode 0644)") !=
				  NULL,
			  ==, i == 0);
		free(TAKE_PTR(errors));
	}

	write_file("headers", "Fine: 1\nhush hush\n");
	f = open_memstream(&errors, &n);
	CHECK_INT(config_export_read_headers(&c->exports[0], f), ==, -EINVAL);
	CHECK_INT(fclose(f), ==, 0);
	CHECK(strstr(errors, "/headers:2: expected Name: value\n"));
	CHECK(!strstr(errors, "hush"));
	free(TAKE_PTR(errors));
	CHECK_INT(unlink(path_of("headers")), ==, 0);
	f = open_memstream(&errors, &n);
	CHECK_INT(config_export_read_headers(&c->exports[0], f), ==, -ENOENT);
	CHECK_INT(fclose(f), ==, 0);
	CHECK(strstr(errors, "/headers: cannot be opened"));
}

/* Each goes to a process in one message: what does not fit is refused before it is started. */
static void test_values_too_long(void)
{
	static const char *const wanted[] = {
		"a.conf:2: k: expected at most 8000 bytes\n",
		"a.conf:4: endpoint: expected at most 8000 bytes, ",
		"a.conf:5: headers: expected at most 8000 bytes\n",
		"a.conf:6: certificate: expected at most 8000 bytes, "};
	static char value[CONFIG_VALUE_MAX_BYTES + 2], text[6 * sizeof(value)];
	_cleanup_(config_freep) struct config *c = NULL;
	_cleanup_free_ char *errors = NULL;
	FILE *f;
	size_t n;

	memset(value, 'y', sizeof(value) - 1);
	(void)snprintf(text, sizeof(text),
		       "[resource]\nk = %s\n[export:a]\nendpoint = http://%s\nheaders = h=%s\n"
		       "certificate = /%s\n",
		       value, value, value, value);
	CHECK_INT(load(&c, write_file("a.conf", text), false, &errors), ==, -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		CHECK(strstr(errors, wanted[i]));
	CHECK_INT(strlen(errors), <, 500);
	free(TAKE_PTR(errors));
	write_file("headers", "A: 1\nB: ");
	f = fopen(path_of("headers"), "a");
	fprintf(f, "%s\n", value);
	CHECK_INT(fclose(f), ==, 0);
	value[CONFIG_VALUE_MAX_BYTES] = '\0';
	(void)snprintf(text, sizeof(text),
		       "[resource]\nk = %s\n[export:a]\nendpoint=http://h\nheaders_file=%s\n",
		       value, path_of("headers"));
	c = load_ok(text);
	CHECK_STR(c->resource[1], value);
	f = open_memstream(&errors, &n);
	CHECK_INT(config_export_read_headers(&c->exports[0], f), ==, -EINVAL);
	CHECK_INT(fclose(f), ==, 0);
	CHECK(strstr(errors, "/headers:2: expected at most 8000 bytes\n"));
	CHECK_INT(unlink(path_of("headers")), ==, 0);
}

/* What is printed loads again and prints the same. */
static void test_print(void)
{
	_cleanup_(config_freep) struct config *a =
		load_ok("[profiler]\nreporter_interval = 1500ms\nstack_size = 1032\n[resource]\n"
			"service.name = s\na = b ; c\n[export:q]\nendpoint = http://h\ncompression "
			"= none\n");
	_cleanup_free_ char *first = printed(a), *second = NULL;
	_cleanup_(config_freep) struct config *b = load_ok(first);

	second = printed(b);
	CHECK_STR(second, first);
	CHECK(strstr(first, "\nreporter_interval = 1500ms\nstack_size = 1032\n"));
	CHECK(strstr(first, "\nservice.name = s\na = b ; c\n"));
	CHECK(strstr(first, "\n[export:q]\nendpoint = http://h\n"));
}

static char *read_source(const char *name)
{
	const char *top = getenv("srcdir");
	char path[512];
	char *text;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", top ? top : ".", name);
	f = fopen(path, "r");
	if (!f) {
		fprintf(stderr, "%s: cannot be opened\n", path);
		exit(1);
	}
	text = calloc(1, 1 << 17);
	CHECK_INT(fread(text, 1, (1 << 17) - 1, f), >, 0);
	CHECK_INT(fclose(f), ==, 0);
	return text;
}

/* The default file: what the program prints, each default in it being the default. */
static void test_default_file(void)
{
	_cleanup_free_ char *file = read_source("etc/perfwalk.conf"), *text = printed(NULL),
			    *set = NULL;
	_cleanup_free_ char *of_file = NULL, *of_set = NULL;
	_cleanup_(config_freep) struct config *c = NULL, *d = NULL;

	CHECK_STR(file, text);
	c = load_ok(file);
	of_file = printed(c);
	/* "#key = value" to "key = value", up to the destinations. */
	set = strdup(file);
	CHECK(set);
	*strstr(set, "#[event:page-faults]") = '\0';
	for (char *p = set; (p = strstr(p, "\n#"));) {
		if (p[2] != ' ' && p[2] != '\n' && strncmp(p + 2, "deployment", 10) != 0)
			p[1] = ' ';
		p += 2;
	}
	CHECK(strstr(set, "\n samples_per_second = 19\n"));
	d = load_ok(set);
	of_set = printed(d);
	CHECK_STR(of_set, of_file);
}

/* NULL: it is the last one. .Sx, a reference, ends no section. */
static const char *section_end(const char *text)
{
	const char *sub = strstr(text, "\n.Ss "), *section = strstr(text, "\n.Sh ");

	return sub && (!section || sub < section) ? sub : section;
}

/* Each key of the table has its item, under its section, in the manual, with its default. */
static void test_manual(void)
{
	_cleanup_free_ char *page = read_source("man/perfwalk.conf.5");
	const struct config_section *sections;
	const struct config_key *keys;
	size_t n, n_sections;

	keys = config_keys(&n);
	sections = config_sections(&n_sections);
	for (size_t s = 0; s < n_sections; s++) {
		_cleanup_free_ char *part = NULL;
		char heading[64];
		const char *at, *end;

		(void)snprintf(heading, sizeof(heading), "\n.Ss [%s%s]\n", sections[s].name,
			       sections[s].example ? ":NAME" : "");
		at = strstr(page, heading);
		if (!at)
			CHECK_STR("the manual", heading);
		end = section_end(at + strlen(heading));
		part = strndup(at, end ? (size_t)(end - at) + 1 : strlen(at));
		for (size_t i = 0; i < n; i++) {
			char item[128];

			if (strcmp(keys[i].section, sections[s].name) != 0)
				continue;
			(void)snprintf(item, sizeof(item), "\n.It Ic %s =%s%s\n", keys[i].name,
				       keys[i].value ? " " : "",
				       keys[i].value ? keys[i].value : "");
			if (!strstr(part, item))
				CHECK_STR("the manual", item);
		}
	}
}

int main(void)
{
	umask(022);
	test_make_directory(dir);
	clear_env();
	RUN(test_defaults);
	RUN(test_types);
	RUN(test_users);
	RUN(test_long_lines);
	RUN(test_continuation);
	RUN(test_form_errors);
	RUN(test_events);
	RUN(test_event_errors);
	RUN(test_names);
	RUN(test_sections_with_names);
	RUN(test_values);
	RUN(test_secrets_stay);
	RUN(test_whole_checks);
	RUN(test_bounds);
	RUN(test_files);
	RUN(test_dropins);
	RUN(test_env_alone);
	RUN(test_env_and_file);
	RUN(test_env_debuginfod);
	RUN(test_env_table);
	RUN(test_env_bad);
	RUN(test_headers_file);
	RUN(test_values_too_long);
	RUN(test_print);
	RUN(test_default_file);
	RUN(test_manual);
	return 0;
}
