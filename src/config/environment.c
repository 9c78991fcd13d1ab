/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OTEL_* environment. It speaks of one destination, while the file may have several, and
 * OpenTelemetry says that a variable goes before a file. So the variables apply to one section:
 *
 *	[export:otel] where the file has it,
 *	else the file's only [export:NAME],
 *	else a new [export:otel], which needs an endpoint from the environment.
 *
 * In that section each variable goes before the key it stands for, and all the other sections are
 * as the file says: a variable meant for one server never sends data or credentials of several
 * destinations to it.
 *
 * OTEL_EXPORTER_OTLP_PROFILES_X goes before OTEL_EXPORTER_OTLP_X; set but empty is as good as
 * unset. As the specification of these variables wants it, a value that makes no sense is ignored
 * with a warning; only a bad endpoint is an error, for going on without it would send nowhere, or
 * elsewhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/config/table.h"
#include "util/text.h"

#define PREFIX		 "OTEL_EXPORTER_OTLP_"
#define OTEL_EXPORT_NAME "otel"

struct variable {
	char name[64];
	const char *value; /* NULL: unset or empty */
};

static const char *get(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

/* The signal's own form of a variable, or else the general one. */
static struct variable get_signal(const char *what)
{
	struct variable v;

	(void)snprintf(v.name, sizeof(v.name), PREFIX "PROFILES_%s", what);
	v.value = get(v.name);
	if (!v.value) {
		(void)snprintf(v.name, sizeof(v.name), PREFIX "%s", what);
		v.value = get(v.name);
	}
	return v;
}

static void ignored(FILE *errors, const char *name, const char *why)
{
	fprintf(errors, "environment: %s: %s; ignored\n", name, why);
}

static const struct config_key *find_key(const char *section, const char *name)
{
	size_t n;
	const struct config_key *keys = config_keys(&n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
			return &keys[i];
	}
	return NULL;
}

static int set_key(struct config_export *x, const char *key, const char *value, char *error)
{
	for (const char *p = value; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return config_expected(error, "a text without control characters");
	}
	return config_value_set(find_key(CONFIG_SECTION_EXPORT, key), x, value, error);
}

/* 1: there is none, and none is wanted. */
static int find_target(struct config *c, struct config_export **ret)
{
	for (size_t i = 0; i < c->n_exports; i++) {
		if (strcmp(c->exports[i].name, OTEL_EXPORT_NAME) == 0) {
			*ret = &c->exports[i];
			return 0;
		}
	}
	if (c->n_exports == 1) {
		*ret = &c->exports[0];
		return 0;
	}
	if (!get(PREFIX "ENDPOINT") && !get(PREFIX "PROFILES_ENDPOINT"))
		return 1;
	return config_export_get(c, OTEL_EXPORT_NAME, ret);
}

/* For gRPC an endpoint may be a host and a port alone, and then INSECURE decides about TLS. */
static int complete(const struct config_export *x, const char *value, char **ret)
{
	const char *insecure = get_signal("INSECURE").value;

	*ret = NULL;
	if (x->protocol != CONFIG_GRPC || strstr(value, "://"))
		return 0;
	if (asprintf(ret, "%s://%s",
		     insecure && strcasecmp(insecure, "true") == 0 ? "http" : "https", value) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int apply_endpoint(struct config_export *x, FILE *errors)
{
	static const struct {
		const char *variable, *key, *other;
	} forms[] = {
		/* The general form replaces what the file says of either key. */
		{PREFIX "ENDPOINT", "endpoint", "profiles_endpoint"},
		{PREFIX "PROFILES_ENDPOINT", "profiles_endpoint", NULL},
	};
	int r, failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		const char *value = get(forms[i].variable);
		_cleanup_free_ char *url = NULL;
		char error[CONFIG_ERROR_MAX];

		if (!value)
			continue;
		r = complete(x, value, &url);
		if (r == 0)
			r = set_key(x, forms[i].key, url ? url : value, error);
		if (r == 0 && forms[i].other)
			r = set_key(x, forms[i].other, "", error);
		if (r == -EINVAL) {
			fprintf(errors, "environment: %s: %s\n", forms[i].variable, error);
			failed = r;
		} else if (r < 0) {
			return r;
		}
	}
	return failed;
}

static int apply_simple(struct config_export *x, FILE *errors)
{
	static const struct {
		const char *what, *key;
	} simple[] = {
		{"PROTOCOL", "protocol"},	{"COMPRESSION", "compression"},
		{"CERTIFICATE", "certificate"}, {"CLIENT_CERTIFICATE", "client_certificate"},
		{"CLIENT_KEY", "client_key"},	{"HEADERS", "headers"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(simple); i++) {
		struct variable v = get_signal(simple[i].what);
		char error[CONFIG_ERROR_MAX];
		int r;

		if (!v.value)
			continue;
		r = set_key(x, simple[i].key, v.value, error);
		if (r == -EINVAL)
			ignored(errors, v.name, error);
		else if (r < 0)
			return r;
	}
	return 0;
}

/* Milliseconds, unlike the key. */
static int apply_timeout(struct config_export *x, FILE *errors)
{
	struct variable v = get_signal("TIMEOUT");
	char error[CONFIG_ERROR_MAX], text[32];
	uint64_t ms;
	int r;

	if (!v.value)
		return 0;
	if (text_parse_u64(v.value, 0, UINT32_MAX, &ms) < 0) {
		ignored(errors, v.name, "expected a number of milliseconds");
		return 0;
	}
	(void)snprintf(text, sizeof(text), "%" PRIu64 "ms", ms);
	r = set_key(x, "timeout", text, error);
	if (r == -EINVAL) {
		ignored(errors, v.name, error);
		return 0;
	}
	return r;
}

struct pair_list {
	struct config *config;
	bool apply;
};

static int add_attribute(void *ctx, const char *key, const char *value, char *error)
{
	const struct pair_list *l = ctx;

	for (const char *p = value; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return config_expected(error, "values without control characters");
	}
	if (config_text_check(key, error) < 0 || config_text_check(value, error) < 0)
		return -EINVAL;
	return l->apply ? config_resource_set(l->config, key, value) : 0;
}

/* What other clients of debuginfod take besides URLs: words such as ima:enforcing. */
static bool is_setting(const char *word)
{
	return strncmp(word, "ima:", 4) == 0;
}

int config_environment_apply_debuginfod(struct config *c, FILE *errors)
{
	static const char name[] = "DEBUGINFOD_URLS";
	const char *value = getenv(name);
	_cleanup_free_ char *copy = value ? strdup(value) : NULL;
	_cleanup_free_ char *urls = value ? calloc(1, strlen(value) + 2) : NULL;
	char error[CONFIG_ERROR_MAX], *state = NULL;
	const struct config_key *key = find_key("debuginfod", "urls");
	int n = 0;

	/* Set but empty turns it off: shells set it for everyone on some systems. */
	if (!value)
		return 0;
	if (!copy || !urls)
		return -ENOMEM;
	for (char *word = strtok_r(copy, " \t\n", &state); word;
	     word = strtok_r(NULL, " \t\n", &state)) {
		struct config scratch = {0};
		int r = is_setting(word) ? 1 : config_value_set(key, &scratch, word, error);

		config_value_free(key, &scratch);
		if (r == -ENOMEM)
			return r;
		if (r == 0 && ++n > CONFIG_DEBUGINFOD_MAX_URLS)
			r = config_expected(error, "at most 16 URLs");
		if (r == -EINVAL)
			ignored(errors, name, error);
		else if (r == 0)
			(void)strcat(strcat(urls, *urls ? " " : ""), word);
	}
	return config_value_set(key, c, urls, error);
}

/* All or nothing: one broken pair discards the variable, as the specification says. */
static int apply_attributes(struct config *c, FILE *errors)
{
	static const char name[] = "OTEL_RESOURCE_ATTRIBUTES";
	const char *value = get(name);
	char error[CONFIG_ERROR_MAX];

	if (!value)
		return 0;
	for (int pass = 0; pass < 2; pass++) {
		_cleanup_free_ char *copy = strdup(value);
		struct pair_list list = {c, pass == 1};
		int r;

		if (!copy)
			return -ENOMEM;
		r = config_list_parse(copy, error, add_attribute, &list);
		if (r == -EINVAL || r == -E2BIG) {
			ignored(errors, name, r == -E2BIG ? "too many attributes" : error);
			return 0;
		}
		if (r < 0)
			return r;
	}
	return 0;
}

int config_environment_apply(struct config *c, FILE *errors)
{
	static const char service_name[] = "OTEL_SERVICE_NAME";
	const char *service = get(service_name);
	struct config_export *x = NULL;
	char error[CONFIG_ERROR_MAX];
	int r;

	r = apply_attributes(c, errors);
	if (r == 0 && service && config_text_check(service, error) < 0)
		ignored(errors, service_name, error);
	else if (r == 0 && service)
		r = config_resource_set(c, "service.name", service);
	if (r < 0)
		return r;

	r = find_target(c, &x);
	if (r == -E2BIG)
		ignored(errors, PREFIX "ENDPOINT", "too many destinations in the file");
	if (r != 0)
		return r == -ENOMEM ? r : 0;
	r = apply_simple(x, errors);
	if (r == 0)
		r = apply_timeout(x, errors);
	return r < 0 ? r : apply_endpoint(x, errors); /* which needs the protocol */
}
