/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cmd/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/render/format.h"
#include "util/cleanup.h"
#include "util/log.h"

int outputs_add(struct outputs *o, const struct command *c, const char *path)
{
	if (o->n == BROKER_MAX_OUTPUTS)
		return options_complain(c, "-o", path, "more than 16 outputs");
	o->items[o->n++] = (struct broker_output){.path = path, .fd = -EBADF};
	return 0;
}

int outputs_set_format(struct outputs *o, const struct command *c, const char *name)
{
	char names[256], text[320];

	o->format = format_of_name(name);
	if (o->format)
		return 0;
	(void)snprintf(text, sizeof(text), "unknown format; the formats are %s",
		       format_names(names, sizeof(names)));
	return options_complain(c, "--format", name, text);
}

/* Each has a format, whatever the order of the options, and standard output is one at most. */
int outputs_choose_formats(struct outputs *o, const struct command *c, bool diff)
{
	uint32_t n_standard = 0;
	char error[FORMAT_ERROR_MAX];

	for (uint32_t i = 0; i < o->n; i++) {
		struct broker_output *output = &o->items[i];
		const struct format *f = format_choose(output->path, o->format, diff, error);

		if (!f)
			return options_complain(c, "-o", output->path, error);
		n_standard += format_is_standard_output(output->path);
		if (n_standard > 1)
			return options_complain(c, "-o", output->path,
						"standard output can be one output only");
		output->format = f->name;
		output->lines = f->lines;
	}
	return o->format && o->n == 0 ? options_complain(c, "--format", o->format->name,
							 "no output is given: add -o FILE")
				      : 0;
}

const struct format *outputs_format(const struct outputs *o, uint32_t i)
{
	return format_of_name(o->items[i].format);
}

bool outputs_use_standard(const struct outputs *o)
{
	for (uint32_t i = 0; i < o->n; i++) {
		if (format_is_standard_output(o->items[i].path))
			return true;
	}
	return false;
}

int outputs_open(struct outputs *o, mode_t mode)
{
	for (uint32_t i = 0; i < o->n; i++) {
		const char *path = o->items[i].path;
		bool standard = format_is_standard_output(path);
		bool there = standard || access(path, F_OK) == 0;
		int fd = standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
				  : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, mode);

		if (fd < 0) {
			int e = -errno;

			log_error("%s cannot be written: %s", path, strerror(-e));
			return e;
		}
		o->created[i] = !there;
		o->items[i].fd = fd;
	}
	return 0;
}

void outputs_close(struct outputs *o)
{
	for (uint32_t i = 0; i < o->n; i++)
		o->items[i].fd = close_fd(o->items[i].fd);
}

void outputs_remove_unwritten(const struct outputs *o, uint32_t written)
{
	for (uint32_t i = 0; i < o->n; i++) {
		if (o->created[i] && !(written >> i & 1))
			(void)unlink(o->items[i].path);
	}
}
