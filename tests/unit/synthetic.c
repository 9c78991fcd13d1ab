/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/synthetic.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define START UINT64_C(1790000000000000000)

const struct render_info synthetic_info = {
	.host_name = "host-1",
	.host_id = "0123456789abcdef0123456789abcdef",
	.host_arch = "x86_64",
	.kernel_release = "6.1.0-test",
	.version = "0.1.0",
	.title = "perfwalk record -a -d 10",
	.n_cpus = 4,
};

const char *const synthetic_hostile_names[] = {
	"</script><img src=x onerror=document.title='owned'>",
	"<!--<script>",
	"]]>&lt;b&gt;&#x27;",
	"'\"`${document.title='owned'}\\u003c\\",
	"a;b;c 12\nroot;evil 1000000",
	"\x1b[2J\x1b]0;owned\x07",
	"\xe2\x80\xa8line\xe2\x80\xa9separators",
	"\xff\xfe\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80",
	"\xe2\x80\xaegnp.exe \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xd8\xa8",
	"__proto__",
	"constructor",
	" ",
};
const uint32_t synthetic_n_hostile_names =
	sizeof(synthetic_hostile_names) / sizeof(synthetic_hostile_names[0]);

static void begin(struct profile *p)
{
	profile_init(p, UINT64_C(1) << 30);
	p->start_unix_ns = START;
	p->end_unix_ns = START + 10 * NSEC_PER_SEC;
	p->types[0].rate_hz = 99;
	p->types[0].period_ns = NSEC_PER_SEC / 99;
	p->types[0].event = strtab_put(&p->strings, "cpu-clock");
}

static uint32_t put_module(struct profile *p, uint64_t uid, uint32_t kind, uint32_t process,
			   const char *path)
{
	struct profile_module m = {.uid = uid, .kind = kind, .process = process};
	char hash[40];
	uint32_t row;

	m.path = strtab_put(&p->strings, path);
	if (kind == PROFILE_MODULE_FILE) {
		m.memory_start = 0x1000;
		m.memory_limit = 0x100000;
		m.file_offset = 0x1000;
		m.n_build_id = 20;
		for (uint32_t i = 0; i < 20; i++)
			m.build_id[i] = (uint8_t)(uid * 7 + i);
		(void)snprintf(hash, sizeof(hash), "%032" PRIx64, hash_u64(uid));
		m.htlhash = strtab_put(&p->strings, hash);
	}
	row = profile_add_module(p, &m);
	CHECK_INT(row, !=, PROFILE_NONE);
	return row;
}

static uint32_t put_process(struct profile *p, uint32_t pid, const char *comm, const char *exe,
			    const char *container, const char *unit)
{
	struct profile_process proc = {.pid = pid,
				       .start_time_unix_ns = START - pid * NSEC_PER_SEC};
	uint32_t row;

	proc.comm = strtab_put(&p->strings, comm);
	proc.executable_path = strtab_put(&p->strings, exe);
	proc.container_id = strtab_put(&p->strings, container);
	proc.container_runtime = strtab_put(&p->strings, *container ? "docker" : "");
	proc.systemd_unit = strtab_put(&p->strings, unit);
	proc.cgroup = strtab_put(&p->strings, "/system.slice/x");
	row = profile_add_process(p, &proc);
	CHECK_INT(row, !=, PROFILE_NONE);
	return row;
}

static uint32_t put_function(struct profile *p, const char *name, const char *file)
{
	struct profile_function f = {.start_line = *file ? 10 : 0};

	f.name = strtab_put(&p->strings, name);
	f.system_name = f.name;
	f.file = strtab_put(&p->strings, file);
	return profile_add_function(p, &f);
}

/* A frame named by one function, or by an inlined one and its caller; "": unnamed. */
static uint32_t put_frame(struct profile *p, uint32_t module, uint64_t address, const char *name,
			  const char *inlined)
{
	struct profile_line lines[2];
	uint32_t n = 0, frame = profile_add_frame(p, module, address);

	CHECK_INT(frame, !=, PROFILE_NONE);
	if (p->frames.items[frame].n_lines)
		return frame;
	if (inlined)
		lines[n++] = (struct profile_line){put_function(p, inlined, "src/in.h"), 5, 2};
	if (*name)
		lines[n++] = (struct profile_line){put_function(p, name, "src/a.c"), 12, 0};
	if (n)
		CHECK(profile_name_frame(p, frame, lines, n));
	return frame;
}

static void put_samples(struct profile *p, uint32_t thread, uint32_t stack, uint32_t cpu,
			uint32_t n)
{
	CHECK_INT(stack, !=, PROFILE_NONE);
	for (uint32_t i = 0; i < n; i++) {
		struct profile_sample s = {
			p->start_unix_ns + (p->types[0].samples.n + 1) * NSEC_PER_MSEC,
			1,
			thread,
			stack,
			cpu,
			1};

		CHECK(profile_add_sample(p, &s));
		p->counters[PROFILE_SAMPLES]++;
		p->counters[PROFILE_USER_STACKS]++;
	}
}

void synthetic_small(struct profile *p)
{
	uint32_t web, node, kworker, kernel, exe, foo, jit, marker, thread, entry, handle,
		frames[8];

	begin(p);
	web = put_process(p, 100, "web", "/usr/bin/web",
			  "0123456789ab0123456789ab0123456789ab0123456789ab0123456789abcdef", "");
	node = put_process(p, 200, "node", "/usr/bin/node", "", "site.service");
	kworker = put_process(p, 7, "kworker/0:1", "", "", "");
	kernel = put_module(p, 1, PROFILE_MODULE_KERNEL, PROFILE_NONE, "");
	exe = put_module(p, 2, PROFILE_MODULE_FILE, PROFILE_NONE, "/usr/bin/web");
	foo = put_module(p, 3, PROFILE_MODULE_FILE, PROFILE_NONE, "/usr/lib/libfoo.so");
	jit = put_module(p, 4, PROFILE_MODULE_JIT, node, "");
	marker = put_module(p, 5, PROFILE_MODULE_MARKER, PROFILE_NONE, "");

	entry = put_frame(p, exe, 0x2000, "main", NULL);
	handle = put_frame(p, exe, 0x2100, "handle", NULL);
	thread = profile_add_thread(p, web, 101, strtab_put(&p->strings, "worker"));
	frames[0] = put_frame(p, exe, 0x2200, "parse", "skip_space");
	frames[1] = handle;
	frames[2] = entry;
	put_samples(p, thread, profile_add_stack(p, frames, 3, 0), 0, 4);
	frames[0] = put_frame(p, kernel, UINT64_C(0xffffffff81000100), "vfs_write", NULL);
	frames[1] = put_frame(p, kernel, UINT64_C(0xffffffff81000200), "do_syscall_64", NULL);
	frames[2] = put_frame(p, exe, 0x2300, "write", NULL);
	frames[3] = handle;
	frames[4] = entry;
	put_samples(p, thread, profile_add_stack(p, frames, 5, 2), 1, 2);

	thread = profile_add_thread(p, node, 200, strtab_put(&p->strings, "node"));
	frames[0] = put_frame(p, jit, UINT64_C(0x7f0000001000), "renderPage", NULL);
	frames[1] = put_frame(p, marker, PROFILE_MARKER_TRUNCATED, "", NULL);
	put_samples(p, thread, profile_add_stack(p, frames, 2, 0), 1, 3);
	p->counters[PROFILE_STACKS_TRUNCATED] += 3;
	frames[0] = put_frame(p, foo, 0x1234, "", NULL);
	frames[1] = put_frame(p, foo, 0x4000, "foo_entry", NULL);
	put_samples(p, thread, profile_add_stack(p, frames, 2, 0), 1, 1);
	p->counters[PROFILE_FRAMES_UNNAMED]++;

	thread = profile_add_thread(p, kworker, 7, strtab_put(&p->strings, "kworker/0:1"));
	frames[0] = put_frame(p, kernel, UINT64_C(0xffffffff81000300), "worker_thread", NULL);
	frames[1] = put_frame(p, kernel, UINT64_C(0xffffffff81000400), "kthread", NULL);
	put_samples(p, thread, profile_add_stack(p, frames, 2, 2), 3, 2);
	p->counters[PROFILE_USER_STACKS] -= 2;
	p->counters[PROFILE_SAMPLES_LOST] = 5;
}

void synthetic_changed(struct profile *p)
{
	uint32_t web, exe, thread, frames[3];

	begin(p);
	web = put_process(p, 300, "web", "/usr/bin/web",
			  "0123456789ab0123456789ab0123456789ab0123456789ab0123456789abcdef", "");
	exe = put_module(p, 2, PROFILE_MODULE_FILE, PROFILE_NONE, "/usr/bin/web");
	thread = profile_add_thread(p, web, 301, strtab_put(&p->strings, "worker"));
	frames[1] = put_frame(p, exe, 0x2100, "handle", NULL);
	frames[2] = put_frame(p, exe, 0x2000, "main", NULL);
	frames[0] = put_frame(p, exe, 0x2400, "render", NULL);
	put_samples(p, thread, profile_add_stack(p, frames, 3, 0), 0, 6);
	frames[0] = put_frame(p, exe, 0x2200, "parse", "skip_space");
	put_samples(p, thread, profile_add_stack(p, frames, 3, 0), 0, 2);
}

static uint32_t next_random(uint64_t *state, uint32_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((*state >> 33) % below);
}

void synthetic_random(struct profile *p, uint32_t seed, uint32_t n_samples)
{
	uint64_t state = seed;
	uint32_t modules[24], threads[60], n_threads = 0, kernel, n_stacks = n_samples / 3 + 1;
	char name[256];

	begin(p);
	kernel = put_module(p, 1000, PROFILE_MODULE_KERNEL, PROFILE_NONE, "");
	for (uint32_t i = 0; i < 24; i++) {
		(void)snprintf(name, sizeof(name), "/usr/lib/x86_64-linux-gnu/libmodule-%u.so.1",
			       i);
		modules[i] = put_module(p, i + 1, PROFILE_MODULE_FILE, PROFILE_NONE, name);
	}
	for (uint32_t i = 0; i < 20; i++) {
		uint32_t process, t = next_random(&state, 4) + 1;

		(void)snprintf(name, sizeof(name), "/usr/sbin/server-%u", i);
		process = put_process(p, 1000 + i, strrchr(name, '/') + 1, name, "",
				      i % 3 ? "srv.service" : "");
		for (uint32_t j = 0; j < t && n_threads < 60; j++) {
			(void)snprintf(name, sizeof(name), "thread-%u", j);
			threads[n_threads++] = profile_add_thread(p, process, 1000 + i + j * 100,
								  strtab_put(&p->strings, name));
		}
	}

	for (uint32_t s = 0; s < n_samples; s++) {
		uint64_t stack_state = seed * 7919u + next_random(&state, n_stacks);
		uint32_t frames[64], n = 5 + next_random(&stack_state, 40), n_kernel;
		struct profile_sample sample = {0};

		n_kernel = next_random(&stack_state, 4) ? 0 : 4;
		for (uint32_t i = 0; i < n; i++) {
			/* Near the root few choices, near the leaf many: what real stacks look
			 * like. */
			uint32_t f = next_random(&stack_state, i < n / 2 ? 400 : 3) + (n - i) * 400;
			bool in_kernel = i < n_kernel;

			(void)snprintf(name, sizeof(name),
				       "namespace_%u::Class<%u>::function_%u(int, char)", f % 7,
				       f % 31, f);
			frames[i] = put_frame(
				p, in_kernel ? kernel : modules[f % 24],
				in_kernel ? UINT64_C(0xffffffff81000000) + f * 16 : 0x2000 + f * 16,
				f % 19 ? name : "", f % 5 ? NULL : "std::move_inlined");
		}
		sample = (struct profile_sample){p->start_unix_ns +
							 s * (10 * NSEC_PER_SEC / n_samples),
						 1,
						 threads[next_random(&state, n_threads)],
						 profile_add_stack(p, frames, n, n_kernel),
						 next_random(&state, 4),
						 1};
		CHECK(profile_add_sample(p, &sample));
	}
	p->counters[PROFILE_SAMPLES] = n_samples;
	p->counters[PROFILE_USER_STACKS] = n_samples;
	p->counters[PROFILE_SAMPLES_LOST] = 3;
}

void synthetic_add_types(struct profile *p, uint32_t seed, uint32_t n)
{
	const struct profile_type types[] = {
		{.period_events = 1,
		 .event = strtab_put(&p->strings, "page-faults"),
		 .rate_hz = 49,
		 .weighted = true},
		{.period_events = 10, .event = strtab_put(&p->strings, "context-switches")},
		{.period_ns = NSEC_PER_MSEC,
		 .event = strtab_put(&p->strings, "task-clock"),
		 .rate_hz = 1000},
	};
	uint64_t state = seed;

	for (uint32_t i = 0; i < 3; i++) {
		uint32_t type = profile_add_type(p, &types[i]);

		CHECK_INT(type, ==, i + 1);
		for (uint32_t j = 0; j < n; j++) {
			struct profile_sample s = {
				.time_unix_ns = p->start_unix_ns + j * NSEC_PER_MSEC,
				.value = types[i].weighted ? 1 + next_random(&state, 1000) : 1,
				.thread = next_random(&state, p->threads.n),
				.stack = next_random(&state, p->stacks.n),
				.cpu = next_random(&state, 4),
				.n = 1};

			CHECK(profile_add_sample_of(p, type, &s));
			p->types[type].counters[PROFILE_SAMPLES]++;
		}
		p->types[type].counters[PROFILE_SAMPLES_LOST] = 10 * type;
		p->types[type].counters[PROFILE_SAMPLES_THROTTLED] = i;
	}
}

void synthetic_hostile(struct profile *p)
{
	begin(p);
	p->types[0].event = strtab_put(&p->strings, "cpu\x01\xff-clock");
	for (uint32_t i = 1; i < 256 + synthetic_n_hostile_names; i++) {
		char text[64];
		uint32_t process, module, thread, frame, stack;

		if (i < 256)
			(void)snprintf(text, sizeof(text), "%c%u%c%c", (int)i, i / 16, (int)i,
				       (int)(i ^ 0x40 ? i ^ 0x40 : 1));
		else
			(void)snprintf(text, sizeof(text), "%s", synthetic_hostile_names[i - 256]);
		process = put_process(p, i, text, text, text, text);
		p->processes.items[process].container_runtime = strtab_put(&p->strings, text);
		p->processes.items[process].pod_uid = strtab_put(&p->strings, text);
		p->processes.items[process].cgroup = strtab_put(&p->strings, text);
		module = put_module(p, i, PROFILE_MODULE_FILE, PROFILE_NONE, text);
		p->modules.items[module].htlhash = strtab_put(&p->strings, text);
		p->modules.items[module].go_build_id = strtab_put(&p->strings, text);
		p->modules.items[module].language = strtab_put(&p->strings, text);
		thread = profile_add_thread(p, process, i, strtab_put(&p->strings, text));
		frame = put_frame(p, module, i, text, text);
		stack = profile_add_stack(p, &frame, 1, 0);
		put_samples(p, thread, stack, i, 1);
	}
}
