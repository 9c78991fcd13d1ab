/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the markers of the allocation library itself, with whatever comes to its mind; with an
 * argument it never ends, and with "ends" it says that blocks end. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void (*picked)(uint64_t, uint64_t, uint64_t, uint64_t) =
		(void (*)(uint64_t, uint64_t, uint64_t, uint64_t))(uintptr_t)dlsym(
			RTLD_DEFAULT, "perfwalk_alloc_sample");
	void (*ended)(uint64_t, uint64_t) = (void (*)(uint64_t, uint64_t))(uintptr_t)dlsym(
		RTLD_DEFAULT, "perfwalk_free_sample");

	if (!picked || !ended)
		return 1;
	/* Ends alone. */
	while (argc > 1 && argv[1][0] == 'e')
		ended(16, 0);
	for (uint64_t i = 0; i < 200 || argc > 1; i++) {
		picked(i, 0, 65536, 1);
		picked(i, UINT64_MAX - i, 65536, 1);
		picked(i, 100, 0, 1);
		picked(i, 100, UINT64_MAX, 1);
		picked(1, UINT64_C(1) << 48, 65536, i);
		ended(i, i % 2);
		ended(~i, i % 2);
	}
	puts("lied");
	return 0;
}
