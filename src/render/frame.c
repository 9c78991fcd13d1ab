/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/profile/labels.h"
#include "src/render/frame.h"
#include "util/text.h"

/* What a thread does, like what it waits for. */
static bool is_state(uint64_t marker)
{
	return marker >= PROFILE_MARKER_ON_CPU && marker <= PROFILE_MARKER_IDLE;
}

enum frame_kind frame_kind(const struct profile *p, uint32_t frame)
{
	switch (p->modules.items[p->frames.items[frame].module].kind) {
	case PROFILE_MODULE_KERNEL:
		return FRAME_KERNEL;
	case PROFILE_MODULE_JIT:
		return FRAME_JIT;
	case PROFILE_MODULE_MARKER:
		return profile_is_wait(p, frame) || is_state(p->frames.items[frame].address)
			       ? FRAME_WAIT
			       : FRAME_MARKER;
	case PROFILE_MODULE_DATA:
		return FRAME_WAIT;
	case PROFILE_MODULE_RUNTIME:
		return FRAME_INTERPRETED;
	default:
		return FRAME_NATIVE;
	}
}

const char *frame_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *frame_module_name(const struct profile *p, uint32_t module)
{
	const struct profile_module *m = &p->modules.items[module];
	const char *path = profile_text(p, m->path);

	switch (m->kind) {
	case PROFILE_MODULE_FILE:
	case PROFILE_MODULE_DATA:
		return *path ? frame_basename(path) : "[unknown]";
	case PROFILE_MODULE_VDSO:
		return "[vdso]";
	case PROFILE_MODULE_KERNEL:
		return "[kernel]";
	case PROFILE_MODULE_JIT:
		return "[jit]";
	case PROFILE_MODULE_MARKER:
		return "";
	case PROFILE_MODULE_RUNTIME:
		return *path ? path : "[unknown]";
	default:
		return "[unknown]";
	}
}

const char *frame_function_module(const struct profile *p, uint32_t module, uint32_t function)
{
	if (p->modules.items[module].kind == PROFILE_MODULE_KERNEL && function != PROFILE_NONE) {
		const char *name = profile_text(p, p->functions.items[function].module_name);

		if (*name)
			return name;
	}
	return frame_module_name(p, module);
}

size_t frame_fallback_name(const struct profile *p, uint32_t frame, char *buf, size_t size)
{
	const struct profile_frame *f = &p->frames.items[frame];
	const char *module = frame_module_name(p, f->module), *text;
	char name[FRAME_MAX_NAME + 32];

	switch (p->modules.items[f->module].kind) {
	case PROFILE_MODULE_FILE:
		text = name;
		if (f->address)
			(void)snprintf(name, sizeof(name), "[%.*s+0x%" PRIx64 "]",
				       FRAME_MAX_NAME - 32, *module == '[' ? "?" : module,
				       f->address);
		else if (*module == '[')
			text = module;
		else
			(void)snprintf(name, sizeof(name), "[%.*s]", FRAME_MAX_NAME - 32, module);
		break;
	case PROFILE_MODULE_VDSO:
		(void)snprintf(name, sizeof(name), "[vdso+0x%" PRIx64 "]", f->address);
		text = name;
		break;
	case PROFILE_MODULE_DATA:
		text = name;
		if (*module == '[') /* "[heap]" */
			(void)snprintf(name, sizeof(name), "[lock 0x%" PRIx64 " %.*s", f->address,
				       FRAME_MAX_NAME - 32, module + 1);
		else
			(void)snprintf(name, sizeof(name), "[lock %.*s+0x%" PRIx64 "]",
				       FRAME_MAX_NAME - 32, module, f->address);
		break;
	case PROFILE_MODULE_MARKER:
		text = profile_marker_text(f->address);
		if (!*text)
			text = "[unknown marker]";
		break;
	default:
		text = module;
	}
	return text_clean(buf, size, text, SIZE_MAX);
}

size_t frame_function_name(const struct profile *p, uint32_t function, char *buf, size_t size)
{
	const struct profile_function *f = &p->functions.items[function];
	const char *name = profile_text(p, f->name);

	if (!*name)
		name = profile_text(p, f->system_name);
	return text_shorten(buf, size, *name ? name : "[function]", NULL);
}

uint32_t frame_count_cut_names(const struct profile *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->functions.n; i++)
		n += strlen(profile_text(p, p->functions.items[i].name)) >= FRAME_MAX_NAME;
	return n;
}

size_t frame_process_owner(const struct profile *p, uint32_t process, char *buf, size_t size)
{
	const struct profile_process *proc = &p->processes.items[process];
	char text[256];

	if (*profile_text(p, proc->container_id)) {
		const char *runtime = profile_text(p, proc->container_runtime);
		const char *name = profile_text(p, proc->container_name);
		bool pod = !*name && *profile_text(p, proc->pod_uid);
		bool only_name = *name && proc->container_name == proc->container_id;

		(void)snprintf(text, sizeof(text), "%s %.160s%s%.12s%s%.36s",
			       *runtime ? runtime : "container", name,
			       *name && !only_name ? " " : "",
			       only_name ? "" : profile_text(p, proc->container_id),
			       pod ? " in pod " : "", pod ? profile_text(p, proc->pod_uid) : "");
		return text_clean(buf, size, text, SIZE_MAX);
	}
	return text_clean(buf, size, profile_text(p, proc->systemd_unit), SIZE_MAX);
}

size_t frame_process_name(const struct profile *p, uint32_t process, char *buf, size_t size)
{
	const struct profile_process *proc = &p->processes.items[process];
	const char *comm = profile_text(p, proc->comm);
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "[%" PRIu32 "]", proc->pid);
	return text_clean(buf, size, *comm ? comm : pid, SIZE_MAX);
}

size_t frame_service_name(const struct profile *p, uint32_t process, char *buf, size_t size)
{
	static const char deleted[] = " (deleted)";
	const struct profile_process *proc = &p->processes.items[process];
	char name[FRAME_MAX_NAME];
	size_t n, n_deleted = sizeof(deleted) - 1;

	if (label_find(profile_text(p, proc->attributes), "service.name", name, sizeof(name)))
		return text_clean(buf, size, name, SIZE_MAX);
	(void)text_clean(name, sizeof(name), frame_basename(profile_text(p, proc->executable_path)),
			 SIZE_MAX);
	n = strlen(name);
	if (n > n_deleted && strcmp(name + n - n_deleted, deleted) == 0)
		name[n - n_deleted] = '\0';
	return *name ? text_clean(buf, size, name, SIZE_MAX)
		     : frame_process_name(p, process, buf, size);
}
