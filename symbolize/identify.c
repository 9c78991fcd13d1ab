/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identifies a file: build ids, a hash that any file has, and its language. Reads notes, a few
 * sections by name and 8 KiB of the file; maps only the section names.
 *
 * "rust" comes from .comment, where each compiler involved leaves its version; so a library of
 * several languages with Rust among them is rust too. Older versions of rustc leave none, and
 * distributions remove the section. Then we look at the constants: panics name their source file,
 * and paths of Rust's core library are all over a Rust program, stripped or not. We read only the
 * first part of the constants, so that a browser with some Rust in it does not count as Rust, and
 * no constants of files in which no panic can unwind: most libraries in C.
 */
#include "symbolize/symbolize.h"

#include <elf.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/stat.h>

#include "symbolize/elf-image.h"
#include "util/notes.h"

#define HTL_PART	4096
#define HTL_BYTES	16
#define NT_GO_BUILD_ID	4
#define MAX_COMMENT	65536
#define MAX_CONSTANTS	(256u << 10) /* each of 20 programs had such a path in the first 120 KiB */
#define CONSTANTS_PIECE 65536
#define MAX_CORE_PATH	256 /* from "library" to ".rs" */
#define GO_BUILDINFO	"\xff Go buildinf:"

static bool id_note(void *ctx, const struct note *note)
{
	struct symbol_file_id *id = ctx;

	if (note_is(note, NT_GNU_BUILD_ID, "GNU") && !id->n_gnu && note->n_desc > 0 &&
	    note->n_desc <= sizeof(id->gnu)) {
		memcpy(id->gnu, note->desc, note->n_desc);
		id->n_gnu = note->n_desc;
	}
	if (note_is(note, NT_GO_BUILD_ID, "Go") && !id->go[0] && note->n_desc < sizeof(id->go)) {
		memcpy(id->go, note->desc, note->n_desc);
		id->go[note->n_desc] = 0;
	}
	return id->n_gnu && id->go[0];
}

/* Without section names the linker's block at the start of the data still shows it. */
static bool has_go_buildinfo(const struct elf_image *im)
{
	uint8_t head[sizeof(GO_BUILDINFO) - 1];

	if (elf_image_find(im, ".go.buildinfo"))
		return true;
	for (uint32_t i = 0; i < im->n_segments; i++) {
		const struct elf_segment *s = &im->segments[i];

		if (s->type == PT_LOAD && (s->flags & (PF_W | PF_X)) == PF_W &&
		    elf_image_read(im, s->offset, head, sizeof(head)) == 0 &&
		    memcmp(head, GO_BUILDINFO, sizeof(head)) == 0)
			return true;
	}
	return false;
}

static bool has_rustc_comment(const struct elf_image *im)
{
	const struct elf_section *s = elf_image_find(im, ".comment");
	_cleanup_free_ char *text = NULL;
	size_t n;

	if (!s || s->type == SHT_NOBITS || s->flags & SHF_COMPRESSED || s->size == 0)
		return false;
	n = s->size < MAX_COMMENT ? (size_t)s->size : MAX_COMMENT;
	text = malloc(n);
	return text && elf_image_read(im, s->offset, text, n) == 0 &&
	       memmem(text, n, "rustc version", 13);
}

/* "/rustc/HASH/library/core/src/str/mod.rs", and "/rustc/HASH/src/libcore/str/mod.rs" before 1.47.
 * The text ends with a 0. */
static bool has_core_path(const char *text, size_t n)
{
	static const char *const directories[] = {"library/core/src/", "src/libcore/"};
	static const char in_paths[] = "abcdefghijklmnopqrstuvwxyz0123456789_/";

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		size_t length = strlen(directories[i]);
		const char *at = text;

		while ((at = memmem(at, n - (size_t)(at - text), directories[i], length))) {
			at += length;
			if (strncmp(at + strspn(at, in_paths), ".rs", 3) == 0)
				return true;
		}
	}
	return false;
}

/* Rust's library comes compiled with unwinding: each program with it has tables of landing pads.
 * Those of 32-bit ARM have no section of their own. */
static bool may_unwind_panics(const struct elf_image *im)
{
	return im->machine == EM_ARM || elf_image_find(im, ".gcc_except_table");
}

/*
 * Reads piece by piece: a file with such a path has many of them, and most have the first one
 * early.
 */
static bool has_rust_constants(const struct elf_image *im)
{
	const struct elf_section *s = elf_image_find(im, ".rodata");
	_cleanup_free_ char *text = NULL;
	bool found = false;
	size_t n;

	if (!s || s->type == SHT_NOBITS || !may_unwind_panics(im))
		return false;
	n = s->size < MAX_CONSTANTS ? (size_t)s->size : MAX_CONSTANTS;
	text = malloc(CONSTANTS_PIECE + 1);
	for (size_t at = 0; text && at < n && !found; at += CONSTANTS_PIECE - MAX_CORE_PATH) {
		size_t piece = n - at < CONSTANTS_PIECE ? n - at : CONSTANTS_PIECE;

		if (elf_image_read(im, s->offset + at, text, piece) < 0)
			break;
		text[piece] = '\0';
		found = has_core_path(text, piece);
	}
	return found;
}

/* First and last 4096 bytes, which overlap or coincide in a short file, and the length. */
static int htlhash(const struct elf_image *file, char ret[2 * HTL_BYTES + 1])
{
	size_t n = file->n_bytes < HTL_PART ? (size_t)file->n_bytes : HTL_PART;
	uint8_t part[HTL_PART], digest[HTL_BYTES], length[8];
	static const char hex[] = "0123456789abcdef";
	struct sha256_ctx sha;
	int r;

	sha256_init(&sha);
	r = elf_image_read(file, 0, part, n);
	if (r < 0)
		return r;
	sha256_update(&sha, n, part);
	r = elf_image_read(file, file->n_bytes - n, part, n);
	if (r < 0)
		return r;
	sha256_update(&sha, n, part);
	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)(file->n_bytes >> (56 - 8 * i));
	sha256_update(&sha, sizeof(length), length);
	sha256_digest(&sha, sizeof(digest), digest);
	for (size_t i = 0; i < HTL_BYTES; i++) {
		ret[2 * i] = hex[digest[i] >> 4];
		ret[2 * i + 1] = hex[digest[i] & 15];
	}
	ret[2 * HTL_BYTES] = 0;
	return 0;
}

static int check_regular(int fd, struct stat *ret)
{
	if (fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? 0 : -EINVAL;
}

int symbol_file_build_id(int fd, uint8_t ret[64], size_t *ret_n)
{
	struct elf_image im = ELF_IMAGE_INIT;
	struct stat st;
	int r = check_regular(fd, &st);

	if (r == 0)
		r = elf_image_open_fd(&im, fd);
	if (r < 0 && r != -ENOEXEC)
		return r;
	*ret_n = r == 0 ? elf_image_build_id(&im, ret) : 0;
	elf_image_close(&im);
	return 0;
}

int symbol_file_identify(int fd, struct symbol_file_id *ret)
{
	struct symbol_file_id id = {0};
	struct elf_image im = ELF_IMAGE_INIT;
	struct stat st;
	int r = check_regular(fd, &st);

	if (r < 0)
		return r;
	im.fd = fd;
	im.n_bytes = (uint64_t)st.st_size;
	r = htlhash(&im, id.htlhash);
	if (r < 0)
		return r;
	r = elf_image_open_fd(&im, fd);
	if (r == 0) {
		elf_image_each_note(&im, id_note, &id);
		if (id.go[0] || has_go_buildinfo(&im))
			id.language = "go";
		else if (has_rustc_comment(&im) || has_rust_constants(&im))
			id.language = "rust";
		elf_image_close(&im);
	} else if (r != -ENOEXEC) {
		return r;
	}
	*ret = id;
	return 0;
}
