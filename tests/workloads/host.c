/* SPDX-License-Identifier: Apache-2.0 */
/* main -> a function of a dlopen()ed plugin -> back into the program -> a linked library by PLT. */
#include <dlfcn.h>
#include <stdio.h>
#include "common.h"

typedef int (*callback)(int);
int tiny_add(int a, int b);

KNOWN int host_callback(int x)
{
	for (int i = 0; i < 5000; i++)
		x = tiny_add(x, i);
	return x;
}

KNOWN int host_run(int (*call)(callback, int))
{
	int r = call(host_callback, 10);
	KEEP_FRAME();
	return r;
}

int main(int argc, char **argv)
{
	volatile int sink = 0;
	void *library = dlopen(argv[1], RTLD_NOW);
	int (*call)(callback, int) =
		library ? (int (*)(callback, int))dlsym(library, "plugin_call") : NULL;

	if (!call) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	for (;;)
		sink += host_run(call);
	return sink;
}
