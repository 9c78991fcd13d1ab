/* SPDX-License-Identifier: Apache-2.0 */
/* What struct config owns: making, replacing and freeing it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/table.h"

#define RESOURCE_MAX 128

/* section: "export", "event", or "" for all that is in struct config itself. */
static bool belongs(const struct config_key *key, const char *section)
{
	if (*section)
		return strcmp(key->section, section) == 0;
	return !config_section_with_name(key->section);
}

int config_set_defaults(const char *section, void *base)
{
	char error[CONFIG_ERROR_MAX];
	size_t n;
	const struct config_key *keys = config_keys(&n);

	for (size_t i = 0; i < n; i++) {
		int r;

		if (!belongs(&keys[i], section))
			continue;
		r = config_value_set(&keys[i], base, "", error);
		if (r < 0)
			return r;
	}
	return 0;
}

static void free_values(const char *section, void *base)
{
	size_t n;
	const struct config_key *keys = config_keys(&n);

	for (size_t i = 0; i < n; i++) {
		if (belongs(&keys[i], section))
			config_value_free(&keys[i], base);
	}
}

struct config *config_free(struct config *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < c->n_exports; i++) {
		free_values(CONFIG_SECTION_EXPORT, &c->exports[i]);
		free(c->exports[i].name);
	}
	free(c->exports);
	for (size_t i = 0; i < c->n_events; i++) {
		free_values(CONFIG_SECTION_EVENT, &c->events[i]);
		free(c->events[i].name);
	}
	free(c->events);
	for (size_t i = 0; i < 2 * c->n_resource; i++)
		free(c->resource[i]);
	free(c->resource);
	free(c->service_name);
	free_values("", c);
	free(c);
	return NULL;
}

int config_export_get(struct config *c, const char *name, struct config_export **ret)
{
	struct config_export *grown, *x;
	int r;

	for (size_t i = 0; i < c->n_exports; i++) {
		if (strcmp(c->exports[i].name, name) == 0) {
			*ret = &c->exports[i];
			return 0;
		}
	}
	if (c->n_exports >= CONFIG_MAX_EXPORTS)
		return -E2BIG;
	grown = reallocarray(c->exports, c->n_exports + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->exports = grown;
	x = &grown[c->n_exports];
	*x = (struct config_export){.name = strdup(name)};
	r = x->name ? config_set_defaults(CONFIG_SECTION_EXPORT, x) : -ENOMEM;
	if (r < 0) {
		free_values(CONFIG_SECTION_EXPORT, x);
		free(x->name);
		return r;
	}
	c->n_exports++;
	*ret = x;
	return 0;
}

int config_event_get(struct config *c, const char *name, struct config_event **ret)
{
	struct config_event *grown, *e;
	int r;

	for (size_t i = 0; i < c->n_events; i++) {
		if (strcmp(c->events[i].name, name) == 0) {
			*ret = &c->events[i];
			return 0;
		}
	}
	if (c->n_events >= CONFIG_MAX_EVENTS)
		return -E2BIG;
	grown = reallocarray(c->events, c->n_events + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	c->events = grown;
	e = &grown[c->n_events];
	*e = (struct config_event){.name = strdup(name)};
	r = e->name ? config_set_defaults(CONFIG_SECTION_EVENT, e) : -ENOMEM;
	if (r < 0) {
		free_values(CONFIG_SECTION_EVENT, e);
		free(e->name);
		return r;
	}
	c->n_events++;
	*ret = e;
	return 0;
}

static int set_service_name(struct config *c, const char *value)
{
	char *copy = *value ? strdup(value) : NULL;

	if (*value && !copy)
		return -ENOMEM;
	free(c->service_name);
	c->service_name = copy;
	return 0;
}

int config_resource_set(struct config *c, const char *key, const char *value)
{
	_cleanup_free_ char *new_key = NULL, *new_value = NULL;
	char **grown;
	size_t i;

	if (strcmp(key, "service.name") == 0)
		return set_service_name(c, value);
	for (i = 0; i < c->n_resource && strcmp(c->resource[2 * i], key) != 0;)
		i++;
	if (!*value) {
		if (i == c->n_resource)
			return 0;
		free(c->resource[2 * i]);
		free(c->resource[2 * i + 1]);
		c->n_resource--;
		memmove(&c->resource[2 * i], &c->resource[2 * i + 2],
			2 * (c->n_resource - i) * sizeof(*c->resource));
		return 0;
	}
	new_value = strdup(value);
	if (!new_value)
		return -ENOMEM;
	if (i < c->n_resource) {
		free(c->resource[2 * i + 1]);
		c->resource[2 * i + 1] = TAKE_PTR(new_value);
		return 0;
	}
	if (c->n_resource >= RESOURCE_MAX)
		return -E2BIG;
	new_key = strdup(key);
	grown = reallocarray(c->resource, 2 * (i + 1), sizeof(*grown));
	if (grown)
		c->resource = grown;
	if (!new_key || !grown)
		return -ENOMEM;
	grown[2 * i] = TAKE_PTR(new_key);
	grown[2 * i + 1] = TAKE_PTR(new_value);
	c->n_resource++;
	return 0;
}

int config_include(struct config *c, enum config_filter filter, const char *value, char *error,
		   size_t n_error)
{
	char **field = &c->include[filter], text[CONFIG_ERROR_MAX] = "out of memory";
	_cleanup_free_ char *list = NULL;
	size_t n;
	const struct config_key *keys = config_keys(&n), *row = NULL;
	int r = -ENOMEM;

	for (size_t i = 0; i < n && !row; i++) {
		if (keys[i].offset == (size_t)((char *)field - (char *)c) &&
		    strcmp(keys[i].section, "filter") == 0)
			row = &keys[i];
	}
	if (!*value) {
		(void)config_expected(text, "at least one name");
		r = -EINVAL;
	} else if (row &&
		   asprintf(&list, "%s%s%s", *field ? *field : "", *field ? "," : "", value) >= 0) {
		r = config_value_set(row, c, list, text);
	}
	if (r < 0)
		(void)snprintf(error, n_error, "%s", text);
	return r;
}
