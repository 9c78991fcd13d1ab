/* SPDX-License-Identifier: Apache-2.0 */
/* Constants that are kept: as long as was read, at their own address alone. */
#include <string.h>

#include "src/reader/constants.h"
#include "tests/unit/test.h"

static void test_kept(void)
{
	struct constants c = {0};
	const uint8_t *found;

	CHECK(!constants_find(&c, 4096, 1) && !constants_find(&c, 0, 0));
	constants_put(&c, 4096, "span_id", 7);
	found = constants_find(&c, 4096, 7);
	CHECK(found && memcmp(found, "span_id", 7) == 0);
	CHECK(constants_find(&c, 4096, 4) == found);
	CHECK(!constants_find(&c, 4096, 8) && !constants_find(&c, 4097, 6));
}

static void test_bounds(void)
{
	struct constants c = {0};
	uint8_t text[CONSTANT_BYTES + 1] = {1};
	uint32_t n = 0;

	constants_put(&c, 4096, text, CONSTANT_BYTES + 1);
	CHECK(!constants_find(&c, 4096, 1));
	constants_put(&c, 4096, text, CONSTANT_BYTES);
	CHECK(constants_find(&c, 4096, CONSTANT_BYTES) != NULL);
	/* There is room for some; each that is found is the right one. */
	for (uint64_t i = 1; i <= 1000; i++)
		constants_put(&c, i, &i, sizeof(i));
	for (uint64_t i = 1; i <= 1000; i++) {
		const uint8_t *found = constants_find(&c, i, sizeof(i));

		n += found != NULL;
		CHECK(!found || memcmp(found, &i, sizeof(i)) == 0);
	}
	CHECK_INT(n, >, CONSTANTS / 2);
	CHECK_INT(n, <=, CONSTANTS);
}

int main(void)
{
	RUN(test_kept);
	RUN(test_bounds);
	return 0;
}
