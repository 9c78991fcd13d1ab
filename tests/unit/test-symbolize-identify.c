/* SPDX-License-Identifier: Apache-2.0 */
/* Build ids, the hash of head, tail and length, and the language, of files made here. */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "symbolize/symbolize.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/test-symbolize-XXXXXX";

static int bytes_fd(const void *bytes, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK_INT(fd, >=, 0);
	CHECK_INT(write(fd, bytes, n), ==, n);
	return fd;
}

/* Built in dir by a shell command that leaves the file "out"; false: the tools are not there. */
static bool build(const char *command, struct symbol_file_id *ret)
{
	_cleanup_close_ int fd = -EBADF;
	char text[2048], path[256];

	(void)snprintf(text, sizeof(text), "cd %s && rm -f out && (%s) >/dev/null 2>&1", dir,
		       command);
	if (system(text)) {
		fprintf(stderr, "SKIP: %s\n", command);
		return false;
	}
	(void)snprintf(path, sizeof(path), "%s/out", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(fd, >=, 0);
	CHECK_INT(symbol_file_identify(fd, ret), ==, 0);
	return true;
}

static void check_output(const char *command, const char *want)
{
	char text[1024], line[1024] = "";
	FILE *f;

	(void)snprintf(text, sizeof(text), "cd %s && %s", dir, command);
	f = popen(text, "r");
	CHECK(f != NULL);
	CHECK(fgets(line, sizeof(line), f) != NULL);
	line[strcspn(line, "\n")] = 0;
	(void)pclose(f);
	CHECK_STR(want, line);
}

/* head, tail and the length in eight bytes, by the shell's tools. */
static const char htl_script[] = "head -c 4096 out\ntail -c 4096 out\n"
				 "n=$(printf '%016x' \"$(stat -c %s out)\")\n"
				 "for i in 0 2 4 6 8 10 12 14; do printf \"\\x${n:$i:2}\"; done\n";

static void test_htlhash(void)
{
	static const size_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 6000, 8191, 8192, 8193, 100000};
	struct symbol_file_id id;
	char command[256];
	FILE *f;

	if (system("bash -c 'sha256sum --version' >/dev/null 2>&1")) {
		fprintf(stderr, "SKIP: no bash and sha256sum to compare with\n");
		return;
	}
	(void)snprintf(command, sizeof(command), "%s/htl", dir);
	f = fopen(command, "w");
	CHECK(f != NULL);
	CHECK(fputs(htl_script, f) >= 0);
	CHECK_INT(fclose(f), ==, 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		(void)snprintf(command, sizeof(command),
			       "yes 0123456789abcdef%zu | head -c %zu > out", i, sizes[i]);
		CHECK(build(command, &id));
		check_output("bash ./htl | sha256sum | cut -c1-32", id.htlhash);
		CHECK_INT(id.n_gnu, ==, 0);
		CHECK_STR(id.go, "");
		CHECK(id.language == NULL);
	}
}

static void test_gnu(void)
{
	struct symbol_file_id id;
	char hex[2 * sizeof(id.gnu) + 1] = "";

	if (!build("echo 'int main(void) { return 0; }' > a.c && gcc -Wl,--build-id=sha1 -o out "
		   "a.c",
		   &id))
		return;
	CHECK_INT(id.n_gnu, ==, 20);
	for (size_t i = 0; i < id.n_gnu; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", id.gnu[i]);
	check_output("readelf -n out | sed -n 's/.*Build ID: //p'", hex);
	CHECK(id.language == NULL);
	/* From the segment, when there are no section headers: e_shnum is the half at 60. */
	CHECK(build("gcc -Wl,--build-id=0xabcdef -o out a.c && "
		    "printf '\\0\\0' | dd of=out bs=1 seek=60 conv=notrunc",
		    &id));
	CHECK_INT(id.n_gnu, ==, 3);
	CHECK_INT(id.gnu[0], ==, 0xab);
	CHECK(build("gcc -Wl,--build-id=none -o out a.c", &id));
	CHECK_INT(id.n_gnu, ==, 0);
}

static void test_go(void)
{
	struct symbol_file_id id;

	if (!build("printf 'package main\\nfunc main() {}\\n' > a.go && go build -o out a.go", &id))
		return;
	CHECK_STR(id.language, "go");
	check_output("go tool buildid out", id.go);
	/* Stripped, and without section headers */
	CHECK(build("go build -ldflags='-s -w' -o out a.go", &id));
	CHECK_STR(id.language, "go");
	CHECK(build("go build -o out a.go && printf '\\0\\0' | dd of=out bs=1 seek=60 conv=notrunc",
		    &id));
	CHECK_STR(id.language, "go");
	CHECK_INT(strlen(id.go), >, 10);
}

static void test_rust(void)
{
	struct symbol_file_id id;

	if (!build("echo 'fn main() {}' > a.rs && rustc -o out a.rs", &id))
		return;
	CHECK_STR(id.language, "rust");
	CHECK(build("rustc -C strip=symbols -o out a.rs", &id));
	CHECK_STR(id.language, "rust");
	/* As distributions strip, and as older compilers make it */
	CHECK(build("rustc -o out a.rs && strip -R .comment out", &id));
	CHECK_STR(id.language, "rust");
}

/* A program in C with this text among its constants, and landing pads for some options, but no
 * other trace of Rust */
static bool build_with_text(const char *text, const char *options, struct symbol_file_id *ret)
{
	char command[512];

	(void)snprintf(command, sizeof(command),
		       "echo 'const char text[] = \"%s\"; void end(int *p) { *p = 0; } "
		       "int main(int n, char **v) { int x __attribute__((cleanup(end))) = n; "
		       "((void (*)(void))v[1])(); return x; }' > a.c && gcc %s -o out a.c",
		       text, options);
	return build(command, ret);
}

static void test_rust_constants(void)
{
	struct symbol_file_id id;

	/* As in a library made in 2020, and at the very end */
	if (!build_with_text("panicked/rustc/7ced01a/src/libcore/str/mod.rs:1", "-fexceptions",
			     &id))
		return;
	CHECK_STR(id.language, "rust");
	CHECK(build_with_text("/usr/src/rustc-1.63.0/library/core/src/str/pattern.rs",
			      "-fexceptions", &id));
	CHECK_STR(id.language, "rust");
	/* Whoever looks for such paths, as we do, is not written in it. */
	CHECK(build_with_text("library/core/src/\\0src/libcore/a.c", "-fexceptions", &id));
	CHECK(id.language == NULL);
	/* Without landing pads no panic gets through: nobody reads the constants. */
	CHECK(build_with_text("/usr/src/rustc-1.63.0/library/core/src/str/pattern.rs",
			      "-fno-exceptions", &id));
	CHECK(id.language == NULL);
}

static void test_not_files(void)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int elf = bytes_fd("\177ELF\2\1\1", 7);
	struct symbol_file_id id;

	CHECK_INT(symbol_file_identify(null, &id), ==, -EINVAL);
	CHECK_INT(symbol_file_identify(-1, &id), ==, -EBADF);
	CHECK_INT(symbol_file_identify(elf, &id), ==, 0);
	CHECK_INT(strlen(id.htlhash), ==, 32);
}

int main(void)
{
	char command[64];

	CHECK(mkdtemp(dir) != NULL);
	CHECK_INT(setenv("GO111MODULE", "off", 1), ==, 0);
	RUN(test_not_files);
	RUN(test_gnu);
	RUN(test_go);
	RUN(test_rust);
	RUN(test_rust_constants);
	RUN(test_htlhash);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK_INT(system(command), ==, 0);
	return 0;
}
