/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "src/config/table.h"

#define COMMENT_WIDTH 96

static void print_keys(const char *section, const void *base, FILE *out)
{
	size_t n;
	const struct config_key *keys = config_keys(&n);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(keys[i].section, section) != 0)
			continue;
		fprintf(out, "%s = ", keys[i].name);
		config_value_print(&keys[i], base, out);
		fputc('\n', out);
	}
}

void config_print(const struct config *c, FILE *out)
{
	size_t n;
	const struct config_section *sections = config_sections(&n);
	const char *gap = "";

	for (size_t i = 0; i < n; i++) {
		if (sections[i].example)
			continue;
		fprintf(out, "%s[%s]\n", gap, sections[i].name);
		gap = "\n";
		print_keys(sections[i].name, c, out);
		if (strcmp(sections[i].name, CONFIG_SECTION_RESOURCE) != 0)
			continue;
		if (c->service_name)
			fprintf(out, "service.name = %s\n", c->service_name);
		for (size_t j = 0; j < c->n_resource; j++)
			fprintf(out, "%s = %s\n", c->resource[2 * j], c->resource[2 * j + 1]);
	}
	for (size_t i = 0; i < c->n_events; i++) {
		fprintf(out, "\n[event:%s]\n", c->events[i].name);
		print_keys(CONFIG_SECTION_EVENT, &c->events[i], out);
	}
	for (size_t i = 0; i < c->n_exports; i++) {
		fprintf(out, "\n[export:%s]\n", c->exports[i].name);
		print_keys(CONFIG_SECTION_EXPORT, &c->exports[i], out);
	}
}

/* text as comment lines, broken between words. */
static void print_comment(FILE *out, const char *text)
{
	while (*text) {
		size_t n = strlen(text), cut = n;

		if (n > COMMENT_WIDTH - 2) {
			for (cut = COMMENT_WIDTH - 2; cut > 0 && text[cut] != ' ';)
				cut--;
			if (cut == 0)
				cut = strcspn(text, " ");
		}
		fprintf(out, "# %.*s\n", (int)cut, text);
		text += cut;
		text += strspn(text, " ");
	}
}

static void print_default_key(const struct config_key *key, FILE *out)
{
	char range[96];

	print_comment(out, key->help);
	if (*config_value_range(key, range, sizeof(range)))
		fprintf(out, "# (%s)\n", range);
	fprintf(out, "#%s =%s%s\n", key->name, key->value ? " " : "", key->value ? key->value : "");
}

void config_print_default(FILE *out)
{
	size_t n, n_keys;
	const struct config_section *sections = config_sections(&n);
	const struct config_key *keys = config_keys(&n_keys);

	fputs("# Configuration of perfwalk; see perfwalk.conf(5).\n"
	      "#\n"
	      "# Each line below shows a default. Change settings here, or better in a file of "
	      "your own,\n"
	      "# perfwalk.conf.d/NAME.conf; the last such file by name wins. A comment takes a "
	      "whole line.\n"
	      "# OTEL_EXPORTER_OTLP_*, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME in the "
	      "environment\n"
	      "# take precedence over this file.\n",
	      out);
	for (size_t i = 0; i < n; i++) {
		fputc('\n', out);
		print_comment(out, sections[i].help);
		/* There is none by default: where profiles go is for the host's owner to say. */
		if (sections[i].example)
			fprintf(out, "#[%s:%s]\n", sections[i].name, sections[i].example);
		else
			fprintf(out, "[%s]\n", sections[i].name);
		if (strcmp(sections[i].name, CONFIG_SECTION_RESOURCE) == 0)
			fputs("#deployment.environment.name = production\n", out);
		for (size_t j = 0; j < n_keys; j++) {
			if (strcmp(keys[j].section, sections[i].name) != 0)
				continue;
			fputc('\n', out);
			print_default_key(&keys[j], out);
		}
	}
}
