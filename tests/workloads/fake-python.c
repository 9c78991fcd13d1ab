/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libpython3.11.so, as far as a profiler looks into it, with a chain of frames that is as the first
 * argument says: honest (fake_main, fake_outer and fake_inner), or one of the lies below. Built
 * twice, as the library and (-DPROGRAM) as a program that needs it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void fake_run(const char *lie);

#ifdef PROGRAM
int main(int argc, char **argv)
{
	fake_run(argc > 1 ? argv[1] : "honest");
	return 0;
}
#else

enum {
	PAGE = 4096,
	N_DEEP = 100000,
	FRAME_WORDS = 10,
	REGION = N_DEEP * FRAME_WORDS * 8 + 64 * PAGE
};

/* What it exports, and the offsets of 3.11 in it. */
unsigned int Py_Version = 0x030b07f0;
unsigned long _PyRuntime[1024], _Py_NoneStruct[8];
unsigned long PyCode_Type[64], PyUnicode_Type[64], PyBytes_Type[64], PyFrame_Type[64];
static unsigned long interp[64], thread[64], cframe[4];

/* Frames, code and names are all in one region, which may go. */
static struct region {
	unsigned long code[3][32], names[3][16], file[16], lines[8];
	unsigned long frames[][FRAME_WORDS];
} * region;

static unsigned long at(const void *p)
{
	return (unsigned long)p;
}

static void make_text(unsigned long *text, const char *characters)
{
	text[1] = at(PyUnicode_Type);
	text[2] = strlen(characters);
	text[4] = 1 << 2 | 1 << 5 | 1 << 6; /* of one byte each, compact, ASCII */
	memcpy(&text[6], characters, strlen(characters) + 1);
}

static void make_code(int i, const char *name)
{
	unsigned long *code = region->code[i];

	make_text(region->names[i], name);
	make_text(region->file, "/fake.py");
	region->lines[1] = at(PyBytes_Type);
	code[1] = at(PyCode_Type);
	code[2] = 4; /* units of bytecode */
	code[9] = 7; /* first line */
	code[14] = at(region->file);
	code[15] = code[16] = at(region->names[i]);
	code[17] = at(region->lines);
}

/* From the innermost frame on: fake_inner, fake_outer, fake_main. */
static void make_chain(int n)
{
	for (int i = 0; i < n; i++) {
		unsigned long *frame = region->frames[i];
		int code = i == n - 1 ? 2 : i > 0;

		frame[4] = at(region->code[code]);
		frame[6] = i == n - 1 ? 0 : at(region->frames[i + 1]);
		frame[7] = at(region->code[code]) + 184;
		frame[8] = i == n - 1 ? 1ul << 32 : 0; /* is_entry */
	}
}

static void make_region(void)
{
	region = mmap(region, REGION, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | (region ? MAP_FIXED : 0), -1, 0);
	if (region == MAP_FAILED)
		exit(1);
	make_code(0, "fake_inner");
	make_code(1, "fake_outer");
	make_code(2, "fake_main");
	make_chain(3);
}

static void make_state(void)
{
	_PyRuntime[5] = at(interp);
	interp[2] = at(thread);
	thread[2] = at(interp);
	thread[7] = at(cframe);
	thread[20] = (unsigned long)getpid();
	cframe[1] = at(region->frames[0]);
}

/* ---- Lies ---- */

static void lie_circle(void)
{
	region->frames[2][6] = at(region->frames[0]);
}

static void lie_itself(void)
{
	region->frames[0][6] = at(region->frames[0]);
}

static void lie_deep(void)
{
	make_chain(N_DEEP);
}

static void lie_wild(void)
{
	region->frames[1][6] = 0xffff8000deadbee8;
}

static void lie_odd(void)
{
	region->frames[1][6] = at(region->frames[2]) + 1;
}

static void lie_code(void)
{
	void *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	region->frames[1][4] = at(none) + 64;
}

static void lie_name(void)
{
	region->names[1][2] = 1ul << 32;
}

static void lie_length(void)
{
	region->names[1][2] = ~0ul;
}

/* Other threads' states, in a circle. */
static void lie_threads(void)
{
	thread[1] = at(thread);
	thread[20] = 1;
}

static void lie_interpreters(void)
{
	interp[0] = at(interp);
}

static void *keep_unmapping(void *arg)
{
	for (;;) {
		make_region();
		usleep(200);
		munmap(region, REGION);
		usleep(200);
	}
	return arg;
}

static void lie_unmap(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, keep_unmapping, NULL) != 0)
		exit(1);
}

static const struct {
	const char *name;
	void (*tell)(void);
} lies[] = {
	{"circle", lie_circle},
	{"itself", lie_itself},
	{"deep", lie_deep},
	{"wild", lie_wild},
	{"odd", lie_odd},
	{"code", lie_code},
	{"name", lie_name},
	{"length", lie_length},
	{"threads", lie_threads},
	{"unmap", lie_unmap},
	{"interpreters", lie_interpreters},
};

/* ---- The evaluation ---- */

__attribute__((noinline)) void fake_spin(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}

__attribute__((noinline)) long _PyEval_EvalFrameDefault(void *state, volatile unsigned long frame)
{
	volatile unsigned long mine = frame;

	for (;;)
		fake_spin();
	return (long)mine + (long)(unsigned long)state;
}

void fake_run(const char *lie)
{
	make_region();
	make_state();
	for (unsigned int i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		if (strcmp(lies[i].name, lie) == 0)
			lies[i].tell();
	}
	_PyEval_EvalFrameDefault(thread, at(region->frames[0]));
}
#endif
