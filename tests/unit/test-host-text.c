/* SPDX-License-Identifier: Apache-2.0 */
/* The two texts of /proc that the host model reads: maps lines and cgroup files. */
#include "tests/unit/test.h"

#include <stdbool.h>

#include "src/host/host.h"
#include "util/cleanup.h"
#include "util/text.h"

#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "01234567-89ab-cdef-0123-456789abcdef"

/* Parses a copy in a block of just that size: the sanitizer sees a byte too far. */
static bool parse_line(const char *text, struct host_maps_line *ret, char **ret_copy)
{
	size_t n = strlen(text);

	*ret_copy = malloc(n ? n : 1);
	CHECK(*ret_copy);
	memcpy(*ret_copy, text, n);
	return host_parse_maps_line(*ret_copy, n, ret);
}

static void test_maps_line(void)
{
	_cleanup_free_ char *copy = NULL;
	struct host_maps_line m;

	CHECK(parse_line("55d22df66000-55d22df7c000 r-xp 00004000 fe:00 247493"
			 "                     /usr/bin/ls",
			 &m, &copy));
	CHECK_INT(m.start, ==, 0x55d22df66000);
	CHECK_INT(m.end, ==, 0x55d22df7c000);
	CHECK_INT(m.file_offset, ==, 0x4000);
	CHECK_INT(m.major, ==, 0xfe);
	CHECK_INT(m.minor, ==, 0);
	CHECK_INT(m.inode, ==, 247493);
	CHECK(m.executable && !m.deleted);
	CHECK_STR(m.path, "/usr/bin/ls");
}

static void test_maps_paths(void)
{
	static const struct {
		const char *line, *path;
		bool deleted, executable;
	} cases[] = {
		{"1000-2000 rwxp 00000000 00:00 0", "", false, true},
		{"1000-2000 rwxp 00000000 00:00 0 ", "", false, true},
		{"1000-2000 r--p 00000000 00:00 0    [vdso]", "[vdso]", false, false},
		{"1000-2000 r-xp 00000000 00:00 0    [anon:a name]", "[anon:a name]", false, true},
		{"1000-2000 r-xs 00000000 00:01 12   /memfd:x y (deleted)", "/memfd:x y", true,
		 true},
		{"1000-2000 r-xs 00000000 00:05 7    /dev/zero (deleted)", "/dev/zero", true, true},
		{"1000-2000 r-xs 00000000 00:01 7    /SYSV00000000 (deleted)", "/SYSV00000000",
		 true, true},
		{"1000-2000 r-xp 00000000 08:01 7    /a b/c  d", "/a b/c  d", false, true},
		{"1000-2000 r-xp 00000000 08:01 7    /a\\012b", "/a\nb", false, true},
		{"1000-2000 r-xp 00000000 08:01 7    /a\\01", "/a\\01", false, true},
		{"1000-2000 r-xp 00000000 08:01 7    /x (deleted) (deleted)", "/x (deleted)", true,
		 true},
		{"1000-2000 r-xp 00000000 08:01 7 anon_inode:[perf_event]",
		 "anon_inode:[perf_event]", false, true},
		{"1000-2000 r-xp 00000000 08:01 18446744073709551615 /x", "/x", false, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *copy = NULL;
		struct host_maps_line m;

		CHECK(parse_line(cases[i].line, &m, &copy));
		CHECK_STR(m.path, cases[i].path);
		CHECK_INT(m.deleted, ==, cases[i].deleted);
		CHECK_INT(m.executable, ==, cases[i].executable);
	}
}

static void test_not_a_maps_line(void)
{
	static const char *const lines[] = {
		"",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-xp",
		"1000-2000 r-xp ",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 8:1",
		"1000-2000 r-xp 0 8:1 ",
		"1000-2000 r-xp 0 8:1 x",
		"1000-2000 r-xp 0 8:1 7x",
		"2000-1000 r-xp 0 8:1 7 /x",
		"1000-1000 r-xp 0 8:1 7 /x",
		"1000 -2000 r-xp 0 8:1 7 /x",
		"g000-2000 r-xp 0 8:1 7 /x",
		"11111111111111111-2000 r-xp 0 8:1 7 /x",
		"1000-2000 r-xp 0 111111111:1 7 /x",
		"1000-2000 r-xp 0 8:1 18446744073709551616 /x",
		"1000-2000 r-xpp 0 8:1 7 /x",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_free_ char *copy = NULL;
		struct host_maps_line m;

		if (parse_line(lines[i], &m, &copy)) {
			fprintf(stderr, "taken for a maps line: %s\n", lines[i]);
			exit(1);
		}
	}
}

static void test_maps_mutations(void)
{
	static const char seed[] =
		"55d22df66000-55d22df7c000 r-xp 00004000 fe:00 247493   /usr/b\\012in/ls (deleted)";
	uint64_t state = 88172645463325252, n_parsed = 0;

	for (int i = 0; i < 100000; i++) {
		size_t n = sizeof(seed) - 1;
		char *copy = malloc(n);
		struct host_maps_line m;

		memcpy(copy, seed, n);
		for (int k = 0; k < 3; k++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			copy[(state >> 33) % n] = (char)(state >> 20);
		}
		if (state % 3 == 0)
			n = (state >> 40) % n;
		if (host_parse_maps_line(copy, n, &m)) {
			n_parsed++;
			CHECK_INT(strlen(m.path), <, sizeof(seed));
			CHECK(m.end > m.start);
		}
		free(copy);
	}
	CHECK_INT(n_parsed, >, 1000);
	CHECK_INT(n_parsed, <, 99000);
}

static void test_cgroup_paths(void)
{
	static const struct {
		const char *path, *id, *runtime, *pod, *unit;
	} cases[] = {
		{"/", "", "", "", ""},
		{"", "", "", "", ""},
		{"/docker/" ID, ID, "docker", "", ""},
		{"/system.slice/docker-" ID ".scope", ID, "docker", "", ""},
		{"/system.slice/docker.service", "", "", "", "docker.service"},
		{"/kubepods/burstable/pod" UID "/" ID, ID, "", UID, ""},
		{"/kubepods/besteffort/pod0123456789abcdef0123456789abcdef/" ID, ID, "",
		 "0123456789abcdef0123456789abcdef", ""},
		{"/kubepods.slice/kubepods-burstable.slice/"
		 "kubepods-burstable-pod01234567_89ab_cdef_0123_"
		 "456789abcdef.slice/cri-containerd-" ID ".scope",
		 ID, "containerd", UID, ""},
		{"/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice/crio-" ID
		 ".scope"
		 "/container",
		 ID, "cri-o", UID, ""},
		{"/system.slice/containerd.service/kubepods-besteffort-pod01234567_89ab_cdef_0123_"
		 "456789abcdef.slice:cri-containerd:" ID,
		 ID, "containerd", UID, "containerd.service"},
		{"/kubepods.slice/crio-conmon-" ID ".scope", "", "", "",
		 "crio-conmon-" ID ".scope"},
		{"/machine.slice/libpod-" ID ".scope/container", ID, "podman", "", ""},
		{"/machine.slice/libpod-conmon-" ID ".scope", "", "", "",
		 "libpod-conmon-" ID ".scope"},
		{"/libpod_parent/libpod-" ID, ID, "podman", "", ""},
		/* podman's pods: their own cgroup, monitors of their containers, a container. */
		{"/libpod_parent/" ID, "", "", "", ""},
		{"/libpod_parent/" ID "/conmon", "", "", "", ""},
		{"/libpod_parent/" ID "/libpod-" ID2, ID2, "podman", "", ""},
		{"/machine.slice/machine-libpod_pod_" ID ".slice", "", "", "", ""},
		/* A kubelet's: a pod's own. */
		{"/kubepods/burstable/pod" UID, "", "", UID, ""},
		{"/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice", "", "",
		 UID, ""},
		{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", ID,
		 "podman", "", "user@1000.service"},
		{"/system.slice/web.service/libpod-payload-" ID, ID, "podman", "", "web.service"},
		{"/ecs/task/" ID, ID, "", "", ""},
		{"/ecs/0123456789abcdef0123456789abcdef/"
		 "0123456789abcdef0123456789abcdef-1234567890",
		 "0123456789abcdef0123456789abcdef-1234567890", "", "", ""},
		/* The innermost counts. */
		{"/docker/" ID "/docker/" ID2, ID2, "docker", "", ""},
		{"/docker/" ID "/kubelet/kubepods/burstable/pod" UID "/" ID2, ID2, "", UID, ""},
		{"/docker/" ID "/system.slice/nginx.service", ID, "docker", "", "nginx.service"},
		/* Units. */
		{"/system.slice/nginx.service", "", "", "", "nginx.service"},
		{"/system.slice/system-getty.slice/getty@tty1.service", "", "", "",
		 "getty@tty1.service"},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/foo.service", "", "", "",
		 "foo.service"},
		{"/user.slice/user-1000.slice/session-3.scope", "", "", "", "session-3.scope"},
		{"/user.slice/user-1000.slice/user@1000.service/init.scope", "", "", "",
		 "user@1000.service"},
		{"/init.scope", "", "", "", ""},
		{"/system.slice", "", "", "", ""},
		/* Not ids: too short, too long, capitals, a name around them. */
		/* LXC and systemd-nspawn: a name, the outermost, as those inside may choose. */
		{"/lxc.payload.web-1", "web-1", "lxc", "", ""},
		{"/lxc.payload.web/system.slice/nginx.service", "web", "lxc", "", "nginx.service"},
		{"/lxc.payload.web/init.scope", "web", "lxc", "", ""},
		{"/lxc.payload.web/lxc.payload.other", "web", "lxc", "", ""},
		{"/lxc.payload.web/docker/" ID, ID, "docker", "", ""},
		{"/docker/" ID "/lxc.payload.web", ID, "docker", "", ""},
		{"/lxc.payload.w\xe9"
		 "b",
		 "", "", "", ""},
		{"/lxc.monitor.web", "", "", "", ""},
		{"/lxc.payload.", "", "", "", ""},
		{"/lxc.payload.a b", "", "", "", ""},
		{"/lxc.payload.a/b", "a", "lxc", "", ""},
		{"/lxc.payload/web/x", "web", "lxc", "", ""},
		{"/lxc/web/system.slice/nginx.service", "web", "lxc", "", "nginx.service"},
		{"/lxc/" ID, ID, "", "", ""},
		{"/lxc", "", "", "", ""},
		{"/srv/lxc/web", "", "", "", ""},
		{"/user.slice/user-1000.slice/user@1000.service/user.slice/lxc.payload.own", "own",
		 "lxc", "", "user@1000.service"},
		{"/machine.slice/machine-web\\x2d1.scope/payload/system.slice/nginx.service",
		 "web-1", "systemd-nspawn", "", "nginx.service"},
		{"/machine.slice/machine-web.scope/supervisor", "web", "systemd-nspawn", "", ""},
		{"/machine.slice/systemd-nspawn@a\\x2db.service/payload/init.scope", "a-b",
		 "systemd-nspawn", "", ""},
		{"/machine.slice/machine-a\\x2", "", "", "", ""},
		{"/machine.slice/machine-a\\x2f.scope", "", "", "", "machine-a\\x2f.scope"},
		{"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator", "", "", "",
		 "machine-qemu\\x2d1\\x2dvm.scope"},
		{"/system.slice/machine-web.scope", "", "", "", "machine-web.scope"},
		{"/docker/0123456789abcdef", "", "", "", ""},
		{"/docker/" ID "0", "", "", "", ""},
		{"/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", "", "",
		 "", ""},
		{"/x-" ID, "", "", "", ""},
		{"/0123456789abcdef0123456789abcdef-12a4", "", "", "", ""},
		{"/podxyz/pod" UID "x", "", "", "", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host_cgroup cg = {0};

		host_parse_cgroup_path(cases[i].path, &cg);
		if (strcmp(cg.container_id, cases[i].id) != 0)
			fprintf(stderr, "  %s\n", cases[i].path);
		CHECK_STR(cg.container_id, cases[i].id);
		CHECK_STR(cg.runtime, cases[i].runtime);
		CHECK_STR(cg.pod_uid, cases[i].pod);
		CHECK_STR(cg.unit, cases[i].unit);
	}
}

/* A name that does not fit is none. */
static void test_long_names(void)
{
	struct host_cgroup cg = {0};
	char path[128];

	(void)snprintf(path, sizeof(path), "/lxc.payload.%064d", 7);
	host_parse_cgroup_path(path, &cg);
	CHECK_INT(strlen(cg.container_id), ==, 64);
	CHECK(cg.is_named);
	(void)snprintf(path, sizeof(path), "/lxc.payload.%065d", 7);
	host_parse_cgroup_path(path, &cg);
	CHECK_STR(cg.container_id, "");
	CHECK(!cg.is_named);
	host_parse_cgroup_path("/lxc.payload.web/docker/" ID, &cg);
	CHECK(!cg.is_named);
}

static void test_hostile_cgroup_paths(void)
{
	struct host_cgroup cg = {0};
	char deep[8192];
	size_t n = 0;

	/* Deeper than is looked at: the innermost are. */
	while (n < 4000)
		n += (size_t)snprintf(deep + n, sizeof(deep) - n, "/x");
	snprintf(deep + n, sizeof(deep) - n, "/docker/" ID);
	host_parse_cgroup_path(deep, &cg);
	CHECK_STR(cg.container_id, ID);
	/* A unit longer than its field is none; control characters do not get through. */
	memset(deep, 'u', 300);
	deep[0] = '/';
	strcpy(deep + 300, ".service");
	host_parse_cgroup_path(deep, &cg);
	CHECK_STR(cg.unit, "");
	host_parse_cgroup_path("/system.slice/a\x1b[2Jb.service", &cg);
	CHECK_STR(cg.unit, "a?[2Jb.service");
}

static void expect_file(const char *text, const char *path)
{
	size_t n = strlen(text);
	char *copy = malloc(n ? n : 1);
	char got[512] = "none";

	memcpy(copy, text, n);
	CHECK(host_parse_cgroup_file(copy, n, got, sizeof(got)) == (path != NULL));
	CHECK_STR(got, path ? path : "none");
	free(copy);
}

static void test_cgroup_files(void)
{
	expect_file("0::/\n", "/");
	expect_file("0::/system.slice/nginx.service\n", "/system.slice/nginx.service");
	/* Version 1: a container beats a unit beats the longest. */
	expect_file("12:pids:/system.slice/a.service\n11:memory:/docker/" ID "\n"
		    "10:devices:/a/long/path/that/says/nothing/at/all\n1:name=systemd:/\n",
		    "/docker/" ID);
	expect_file("12:pids:/a/long/path/of/no/use/to/anyone\n11:memory:/user.slice\n"
		    "1:name=systemd:/system.slice/nginx.service\n",
		    "/system.slice/nginx.service");
	expect_file("5:cpu,cpuacct:/a\n4:memory:/a/b\n", "/a/b");
	/* Hybrid. */
	expect_file("1:name=systemd:/system.slice/x.service\n0::/system.slice/x.service\n",
		    "/system.slice/x.service");
	expect_file("0::/system.slice/gone.service (deleted)\n", "/system.slice/gone.service");
	expect_file("0::/../../docker/" ID "\n", "/../../docker/" ID);
	/* Not such a file; a line that was cut. */
	expect_file("", NULL);
	expect_file("hello\n", NULL);
	expect_file("0:\n::\n", NULL);
	expect_file("0::relative\n", NULL);
	expect_file("0::/docker/" ID, NULL);
	expect_file("0::/a\n1:x:/docker/" ID, "/a");
	/* Names are cleaned. */
	expect_file("0::/a\x01z\xff\n", "/a?z?");
}

/* ---- Containers' names ---- */

#define STATE_MAX 4096

/* Of a copy of just that size. */
static const char *name_of(const char *text, size_t n, bool *ret_found)
{
	static char name[300];
	_cleanup_free_ char *copy = malloc(n ? n : 1);

	CHECK(copy);
	memcpy(copy, text, n);
	*ret_found = host_parse_container_state(copy, n, ID, name, sizeof(name));
	return name;
}

static void test_container_json(void)
{
	static const struct {
		const char *text, *name;
	} cases[] = {
		{"{\"ID\":\"" ID "\",\"Name\":\"/web\",\"Driver\":\"overlay2\"}", "web"},
		{"{ \"a\" : [1, {\"Name\": \"inner\"}], \"Name\" : \"web\" }", "web"},
		{"{\"Config\":{\"Env\":[\"Name\",\"x\"],\"Labels\":{"
		 "\"io.kubernetes.container.name\":\"nginx\",\"io.kubernetes.pod.name\":\"web-1\","
		 "\"io.kubernetes.pod.namespace\":\"prod\"}},\"Name\":\"/k8s_nginx_web-1\"}",
		 "prod/web-1/nginx"},
		/* The order of the keys is not ours to know. */
		{"{\"Name\":\"\\/"
		 "k8s_x\",\"Config\":{\"Labels\":{\"io.kubernetes.container.name\":\"nginx\","
		 "\"io.kubernetes.pod.name\":\"web-1\",\"io.kubernetes.pod.namespace\":\"prod\"}}}",
		 "prod/web-1/nginx"},
		{"{\"ociVersion\":\"1.0\",\"process\":{\"args\":[\"{\",\"\\\"\"]},\"annotations\":{"
		 "\"io.kubernetes.cri.sandbox-namespace\":\"prod\","
		 "\"io.kubernetes.cri.sandbox-name\":\"web-1\","
		 "\"io.kubernetes.cri.container-name\":\"nginx\"}}",
		 "prod/web-1/nginx"},
		{"{\"annotations\":{\"io.kubernetes.cri.sandbox-namespace\":\"prod\","
		 "\"io.kubernetes.cri.sandbox-name\":\"web-1\"}}",
		 "prod/web-1"},
		{"{\"annotations\":{\"nerdctl/name\":\"redis\"}}", "redis"},
		/* A user's label is not the name, nor is what is deeper. */
		{"{\"Config\":{\"Name\":\"no\",\"Labels\":{\"Name\":\"no\"}}}", NULL},
		{"{\"x\":{\"annotations\":{\"nerdctl/name\":\"no\"}}}", NULL},
		{"{\"Name\":17,\"Other\":\"x\"}", NULL},
		{"{\"Name\":\"cut", NULL},
		{"{}", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool found;
		const char *name = name_of(cases[i].text, strlen(cases[i].text), &found);

		CHECK_INT(found, ==, cases[i].name != NULL);
		CHECK_STR(name, cases[i].name ? cases[i].name : "");
	}
}

static void test_container_conmon(void)
{
	static const char good[] = "/usr/bin/conmon\0--api-version\0001\0-c\0" ID "\0-n\0web\0";
	static const char other[] = "/usr/bin/conmon\0-c\0" ID2 "\0-n\0web\0";
	static const char program[] = "/usr/bin/python\0-c\0" ID "\0-n\0web\0";
	bool found;

	CHECK_STR(name_of(good, sizeof(good) - 1, &found), "web");
	CHECK(found);
	(void)name_of(other, sizeof(other) - 1, &found);
	CHECK(!found);
	(void)name_of(program, sizeof(program) - 1, &found);
	CHECK(!found);
	for (size_t n = 0; n < sizeof(good) - 1; n++) {
		(void)name_of(good, n, &found);
		CHECK(!found);
	}
}

/* Any bytes: an outcome, and text that is clean. */
static void test_container_hostile(void)
{
	static const char tokens[] = "{}[]:,\"\\\0\nabu";
	char text[STATE_MAX];
	uint64_t seed = 1;
	bool found;

	for (int round = 0; round < 2000; round++) {
		size_t n = 1 + (size_t)round % (STATE_MAX - 1);

		for (size_t i = 0; i < n; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			text[i] = tokens[(seed >> 33) % (sizeof(tokens) - 1)];
		}
		text[0] = round % 2 ? '{' : text[0];
		(void)name_of(text, n, &found);
	}
	memset(text, '[', sizeof(text));
	text[0] = '{';
	(void)name_of(text, sizeof(text), &found);
	CHECK(!found);
}

int main(void)
{
	RUN(test_maps_line);
	RUN(test_maps_paths);
	RUN(test_not_a_maps_line);
	RUN(test_maps_mutations);
	RUN(test_cgroup_paths);
	RUN(test_long_names);
	RUN(test_hostile_cgroup_paths);
	RUN(test_cgroup_files);
	RUN(test_container_json);
	RUN(test_container_conmon);
	RUN(test_container_hostile);
	return 0;
}
