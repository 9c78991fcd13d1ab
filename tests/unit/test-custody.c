/* SPDX-License-Identifier: Apache-2.0 */
/* What is lost when the symbolizer and the exporter die, in each order. */
#include "src/broker/custody.h"
#include "tests/unit/test.h"

/* It had 10 samples that the exporter had not settled, and had sent all but 3 of them to the
 * exporter of start 2. */
static const struct status_custody symbolizer = {.unsettled = 10, .unsent = 3, .exporter = 2};

static void test_exporter_first(void)
{
	const struct status_custody exporter = {.orphans = 0};
	struct custody c = {.lost = 0};

	custody_exporter_died(&c, &exporter);
	CHECK_INT(c.lost, ==, 0); /* the symbolizer sends them again */
	custody_symbolizer_died(&c, &symbolizer, 5, 0);
	CHECK_INT(c.lost, ==, 10);
	custody_symbolizer_died(&c, &symbolizer, 6, 3); /* one that it had sent nothing yet */
	CHECK_INT(c.lost, ==, 20);
}

static void test_symbolizer_first(void)
{
	const struct status_custody before = {.orphans = 1, .symbolizer = 4};
	const struct status_custody behind = {.orphans = 6, .symbolizer = 5};
	struct custody c = {.lost = 0};

	custody_symbolizer_died(&c, &symbolizer, 5, 2);
	CHECK_INT(c.lost, ==, 3);
	custody_exporter_died(&c, &before); /* with 7 in its socket, and 1 of an earlier one */
	CHECK_INT(c.lost, ==, 3 + 8);
	custody_exporter_died(&c, &before); /* the next one has no such socket */
	CHECK_INT(c.lost, ==, 3 + 8 + 1);

	c.lost = 0;
	custody_symbolizer_died(&c, &symbolizer, 5, 2);
	custody_exporter_died(&c, &behind); /* it has read them, and settled one */
	CHECK_INT(c.lost, ==, 3 + 6);
}

static void test_nothing_is_lost(void)
{
	const struct status_custody sent = {.unsettled = 10, .unsent = 0, .exporter = 2};
	const struct status_custody settled = {.orphans = 0, .symbolizer = 5};
	struct custody c = {.lost = 0};

	custody_symbolizer_died(&c, &sent, 5, 2);
	custody_exporter_died(&c, &settled);
	CHECK_INT(c.lost, ==, 0);
}

int main(void)
{
	RUN(test_exporter_first);
	RUN(test_symbolizer_first);
	RUN(test_nothing_is_lost);
	return 0;
}
