/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a capture: one profile, recorded here or read from files, is rendered. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/process/status-page.h"
#include "src/profile/native-frames.h"
#include "src/render/format.h"
#include "src/render/render.h"
#include "src/symbolizer/debug-show.h"
#include "src/symbolizer/internal.h"
#include "util/log.h"
#include "util/text.h"

/* A format that holds one type gets that one; record said so when it began. */
static int render_profile(const struct symbolizer *s, const struct format *format, FILE *f)
{
	struct profile asked;

	if (s->setup.view == VIEW_DIFF)
		return format->render_diff(&s->viewer.before, &s->profile, &s->info, f);
	if (format->all_types)
		return format->render(&s->profile, &s->info, f);
	profile_view(&s->profile, profile_asked_type(&s->profile, s->info.asked), &asked);
	return format->render(&asked, &s->info, f);
}

static int render_to(struct symbolizer *s, const char *what, int fd, const struct format *format)
{
	_cleanup_close_ int again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	FILE *f = fdopen(fd, "we");
	int r = f ? 0 : -errno;

	/* A symbolizer that died while writing has left a part of the file. A pipe cannot be
	 * rewound, and standard output may be a file that others write to as well. */
	if (f && !format_is_standard_output(what) && lseek(fd, 0, SEEK_SET) == 0 &&
	    ftruncate(fd, 0) < 0)
		log_debug("%s cannot be truncated: %s", what, strerror(errno));

	if (f) {
		errno = 0;
		r = render_profile(s, format, f);
		/* The stream only knows that a write failed; errno still knows why. */
		if (r == -EIO && errno)
			r = -errno;
		if (fclose(f) != 0 && r == 0)
			r = -errno;
	}
	if (r < 0) {
		log_error("%s cannot be written: %s",
			  format_is_standard_output(what) ? "standard output" : what, strerror(-r));
		/* Half of a file is none; the broker removes what it made for it. */
		if (!format_is_standard_output(what) && ftruncate(again, 0) < 0)
			log_debug("%s is left unchanged: %s", what, strerror(errno));
	}
	return r;
}

/* What the command prints. */
static int render_text(struct symbolizer *s, FILE *f)
{
	switch ((enum view_mode)s->setup.view) {
	case VIEW_REPORT:
		return render_report(&s->profile, &s->info, &s->setup.report, f);
	case VIEW_DIFF:
		return render_diff(&s->viewer.before, &s->profile, &s->setup.report, f);
	default:
		return render_summary(&s->profile, &s->info, f, s->setup.color,
				      s->setup.terminal_width);
	}
}

/* A table is all that a report is; the summary of a capture may get lost, its files are there. */
static int print_text(struct symbolizer *s)
{
	FILE *f = fdopen(TAKE_FD(s->summary_fd), "we");
	int r = f ? 0 : -errno;

	if (f) {
		errno = 0;
		r = render_text(s, f);
		if (r == -EIO && errno)
			r = -errno;
		if (fclose(f) != 0 && r == 0)
			r = -errno;
	}
	/* Nobody reading it (a closed pipe) is no failure. */
	if (r == 0 || r == -EPIPE || s->setup.view == VIEW_NONE)
		return 0;
	log_error("the table cannot be written: %s", strerror(-r));
	return r;
}

int symbolizer_show_debug(struct symbolizer *s)
{
	const struct setup_symbolizer *setup = &s->setup;
	const struct debug_request request = {.mode = (enum view_mode)setup->view,
					      .path = s->viewer.inputs[0].path,
					      .fd = s->viewer.inputs[0].fd,
					      .which = setup->has_which ? &setup->which : NULL,
					      .what = s->viewer.symbol,
					      .errors_too = setup->errors_too,
					      .ask = &s->ask};
	FILE *f = fdopen(TAKE_FD(s->summary_fd), "we");
	int r = -EBADF;

	if (f && setup->view == VIEW_DEBUG_RUNTIME && s->viewer.n > 1)
		r = debug_show_runtime(
			&(struct debug_process){
				.name = request.path,
				.memory = request.fd,
				.images = s->viewer.inputs[1].fd,
				.threads = s->viewer.n > 2 ? s->viewer.inputs[2].fd : -1,
				.n_named = setup->which,
			},
			f);
	else if (f)
		r = debug_show(&s->role, &request, f);
	if (f)
		(void)fclose(f);
	return r;
}

static int list_windows(struct symbolizer *s)
{
	FILE *f = fdopen(TAKE_FD(s->summary_fd), "we");
	int r = f ? 0 : -errno;

	if (f) {
		r = viewer_list_windows(&s->viewer, &s->role, &s->setup.report,
					s->profile.max_bytes, f);
		(void)fclose(f);
	}
	return r;
}

int symbolizer_view_files(struct symbolizer *s)
{
	int r;

	/* Some of the daemon's profiles may begin with another of its events. */
	if (s->setup.of_store && !s->viewer.event) {
		s->viewer.facts.like_what = "cpu";
		s->viewer.facts.like_unit = "nanoseconds";
		s->viewer.facts.like_only = true;
	}
	s->setup.report.symbol = s->viewer.symbol;
	s->setup.report.comm = s->viewer.comm;
	s->setup.report.container = s->viewer.container;
	s->setup.report.service = s->viewer.service;
	s->setup.report.trace = s->viewer.trace;
	s->setup.report.span = s->viewer.span;
	if (s->setup.view == VIEW_WINDOWS)
		return list_windows(s);
	r = viewer_read(&s->viewer, &s->role, (enum view_mode)s->setup.view, &s->profile);

	/* Without files of its own: perf.data, from a profiler. */
	if (s->viewer.n > 0) {
		viewer_info(&s->viewer, &s->profile, &s->info);
		if (s->setup.demangle_again) {
			namer_demangle_again(s->namer, &s->profile);
			namer_demangle_again(s->namer, &s->viewer.before);
		}
	}
	return r;
}

/* A profile from a file may say where it was recorded. */
static int use_facts(struct symbolizer *s)
{
	const struct profile *p = &s->profile;
	int r = 0;

	if (p->host_name != STRID_EMPTY)
		r = text_set(&s->info.host_name, profile_text(p, p->host_name));
	if (r == 0 && p->kernel_release != STRID_EMPTY)
		r = text_set(&s->info.kernel_release, profile_text(p, p->kernel_release));
	if (p->n_cpus)
		s->info.n_cpus = p->n_cpus;
	return r;
}

/* If perf.data could not be read, no window has come, and its reader has said why. */
static bool has_text(const struct symbolizer *s)
{
	return s->summary_fd >= 0 && (s->setup.view == VIEW_NONE || s->viewer.n > 0 ||
				      s->role.status->counts.windows_named > 0);
}

/* The table of a report, which knows all samples, and says how many there are. */
static int print_report(struct symbolizer *s)
{
	int r = has_text(s) ? print_text(s) : 0, chosen = 0;

	if (s->n_outputs)
		chosen = render_choose_samples(&s->profile, &s->setup.report);
	return chosen < 0 ? chosen : r;
}

int symbolizer_render_all(struct symbolizer *s, struct message *ret)
{
	int result = use_facts(s);

	if (s->setup.hide_native)
		profile_hide_native_frames(&s->profile);
	if (s->setup.view == VIEW_REPORT) {
		int r = print_report(s);

		result = result < 0 ? result : r;
		if (r == -ENOMEM)
			return r;
	}
	for (uint32_t i = 0; i < s->n_outputs; i++) {
		const struct format *f = s->outputs[i].format;
		bool known = f && (s->setup.view != VIEW_DIFF || f->render_diff);
		int r = known ? format_check_values(f, s->outputs[i].path, &s->profile) : -EINVAL;

		if (r == 0)
			r = render_to(s, s->outputs[i].path, TAKE_FD(s->outputs[i].fd), f);
		if (r == 0)
			ret->result.written |= UINT32_C(1) << i;
		ret->result.output_errors[i] = r;
		result = result < 0 ? result : r;
	}
	if (s->setup.view != VIEW_REPORT && has_text(s)) {
		int r = print_text(s);

		result = result < 0 ? result : r;
	}
	return result;
}
