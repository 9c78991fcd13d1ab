/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>

#include "src/broker/filter-texts.h"
#include "src/config/config.h"
#include "src/process/filter.h"

#define CONTAINER_ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char container_id[] = CONTAINER_ID;
static const char container_path[] = "/system.slice/docker-" CONTAINER_ID ".scope/init.scope";
static const char unit_path[] =
	"/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service";

/* The rules, and whether a sample of that cgroup passes. */
static bool passes(const char *const *rules, const struct filter_subject *subject)
{
	struct filter f = {0};
	bool r;

	for (; *rules; rules++)
		CHECK_INT(filter_add(&f, *rules), ==, 0);
	r = filter_passes(&f, subject);
	filter_deinit(&f);
	return r;
}
#define PASSES(subject, ...) passes((const char *const[]){__VA_ARGS__, NULL}, subject)

static void test_each_kind(void)
{
	const struct filter_subject web = {.comm = "nginx",
					   .thread = "nginx: worker",
					   .cgroup = container_path,
					   .container_id = container_id,
					   .has_uid = true,
					   .uid = 33};
	const struct filter_subject named = {.comm = "nginx",
					     .thread = "",
					     .cgroup = container_path,
					     .container_id = container_id,
					     .container = "prod/web-1/nginx"};
	const struct filter_subject editor = {
		.comm = "vi", .thread = "vi", .cgroup = unit_path, .container_id = ""};

	CHECK(PASSES(&web, "+nng*"));
	CHECK(PASSES(&web, "+n*worker"));
	CHECK(!PASSES(&web, "+nngin"));
	CHECK(PASSES(&web, "+u33"));
	CHECK(!PASSES(&web, "+u0"));
	CHECK(PASSES(&web, "+c0123"));
	CHECK(!PASSES(&web, "+c1"));
	CHECK(PASSES(&web, "+g/system.slice"));
	CHECK(!PASSES(&web, "+g/system.slic"));
	CHECK(PASSES(&web, "+g"));
	/* A unit, the one it runs in, and a slice around both. */
	CHECK(PASSES(&editor, "+seditor.service"));
	CHECK(PASSES(&editor, "+suser@1000.service"));
	CHECK(PASSES(&editor, "+suser-*.slice"));
	CHECK(!PASSES(&editor, "+seditor"));
	CHECK(!PASSES(&editor, "+c0123"));
	/* A container by name: of a pod the whole, the pod or the container. */
	CHECK(PASSES(&named, "+cprod/web"));
	CHECK(PASSES(&named, "+cweb-"));
	CHECK(PASSES(&named, "+cnginx"));
	CHECK(PASSES(&named, "+c0123"));
	CHECK(!PASSES(&named, "+ceb-"));
	CHECK(!PASSES(&named, "+credis"));
	CHECK(!PASSES(&named, "-cprod"));
}

static void test_how_rules_join(void)
{
	const struct filter_subject web = {
		.comm = "nginx", .thread = "", .has_uid = true, .uid = 33};

	CHECK(PASSES(&web, "+nvi", "+nnginx"));
	CHECK(PASSES(&web, "+nnginx", "+u33"));
	CHECK(!PASSES(&web, "+nnginx", "+u0"));
	CHECK(!PASSES(&web, "+nnginx", "-u33"));
	CHECK(PASSES(&web, "-nvi", "-u0"));
	CHECK(!PASSES(&web, "-nvi", "-nng*"));
}

/* Neither in a list of those wanted nor in one of those unwanted. */
static void test_what_is_not_known(void)
{
	const struct filter_subject gone = {.comm = "", .thread = ""};

	CHECK(!PASSES(&gone, "+u0"));
	CHECK(PASSES(&gone, "-u0"));
	CHECK(!PASSES(&gone, "+g"));
	CHECK(PASSES(&gone, "-g", "-s*", "-c0"));
}

static int collect(void *ctx, const char *text)
{
	return filter_add(ctx, text);
}

static void test_from_a_config(void)
{
	char users[] = "0, 65534", units[] = "ssh , *.scope", groups[] = "/a/b/", names[] = "x";
	struct config c = {0};
	struct filter f = {0};

	c.include[CONFIG_FILTER_USER] = users;
	c.include[CONFIG_FILTER_UNIT] = units;
	c.include[CONFIG_FILTER_CGROUP] = groups;
	c.exclude[CONFIG_FILTER_COMM] = names;
	CHECK_INT(filter_texts_each(&c, true, collect, &f), ==, 0);
	CHECK_INT(f.rules.n, ==, 6);
	CHECK(f.rules.items[0].exclude && f.rules.items[0].kind == FILTER_COMM);
	CHECK_INT(f.rules.items[2].uid, ==, 65534);
	CHECK_STR(f.rules.items[3].text, "ssh.service");
	CHECK_STR(f.rules.items[4].text, "*.scope");
	CHECK_STR(f.rules.items[5].text, "/a/b");
	CHECK(f.asks_user && f.asks_cgroup);
	filter_deinit(&f);

	/* The kernel picks out the group: the rest is ours. */
	f = (struct filter){0};
	CHECK_INT(filter_texts_each(&c, false, collect, &f), ==, 0);
	CHECK_INT(f.rules.n, ==, 5);
	filter_deinit(&f);
}

static void test_no_rules(void)
{
	static const char *const bad[] = {"", "+", "nx", "+z1", "+u", "+ux", "+u-1"};
	struct filter f = {0};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(filter_add(&f, bad[i]), ==, -EBADMSG);
	CHECK(filter_is_empty(&f));
}

int main(void)
{
	RUN(test_each_kind);
	RUN(test_how_rules_join);
	RUN(test_what_is_not_known);
	RUN(test_from_a_config);
	RUN(test_no_rules);
	return 0;
}
