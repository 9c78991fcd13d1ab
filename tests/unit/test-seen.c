/* SPDX-License-Identifier: Apache-2.0 */
/* What the rings of mappings tell of files whose processes are gone. */
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "src/broker/seen.h"
#include "tests/unit/test.h"

#define RING_BYTES 4096

/* A ring as the kernel fills it. */
static struct perf_event_mmap_page page;
static uint8_t data[RING_BYTES];
static struct events events;

static void put(uint64_t at, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		data[(at + i) % RING_BYTES] = ((const uint8_t *)bytes)[i];
}

/* As perf_event_open(2) describes it, byte by byte. Returns its size. */
static uint16_t put_mmap2(uint64_t at, uint32_t major, uint32_t minor, uint64_t inode,
			  const char *path)
{
	uint64_t n_path = (strlen(path) + 8) / 8 * 8, words[8] = {0};
	uint16_t misc = PERF_RECORD_MISC_USER, size = (uint16_t)(72 + n_path + 24);
	uint32_t type = 10, protection = 5;
	uint64_t device = major | (uint64_t)minor << 32;

	words[0] = type | (uint64_t)misc << 32 | (uint64_t)size << 48;
	words[1] = 0x0000007b0000007b; /* pid, tid */
	words[2] = 0x400000;
	words[3] = 0x1000;
	words[5] = device;
	words[6] = inode;
	put(at, words, sizeof(words));
	put(at + 64, &(uint64_t){protection}, 8);
	put(at + 72, (char[RING_BYTES]){0}, n_path + 24);
	put(at + 72, path, strlen(path));
	page.data_head = at + size;
	return size;
}

static struct mapped_file_name name_of(uint32_t major, uint32_t minor, uint64_t inode,
				       const char *path)
{
	struct mapped_file_name f = {.major = major, .minor = minor, .inode = inode};

	message_set_text(f.path, sizeof(f.path), path);
	return f;
}

static void begin(void)
{
	memset(data, 0, sizeof(data));
	page.data_head = 0;
}

static void test_only_what_was_mapped(void)
{
	struct mapped_file_name f = name_of(8, 1, 4711, "/opt/own/program");

	begin();
	CHECK(!seen_mapped(&events, &f));
	(void)put_mmap2(16, 8, 1, 4711, "/opt/own/program");
	CHECK(seen_mapped(&events, &f));
	f = name_of(8, 1, 4712, "/opt/own/program");
	CHECK(!seen_mapped(&events, &f));
	f = name_of(8, 2, 4711, "/opt/own/program");
	CHECK(!seen_mapped(&events, &f));
	f = name_of(8, 1, 4711, "/opt/own/program2");
	CHECK(!seen_mapped(&events, &f));
	f = name_of(8, 1, 4711, "/opt/own/progra");
	CHECK(!seen_mapped(&events, &f));
	f = name_of(8, 1, 0, "/opt/own/program");
	CHECK(!seen_mapped(&events, &f));
	memset(f.path, 'x', sizeof(f.path));
	CHECK(!seen_mapped(&events, &f));
}

/* Read long ago: the tail is behind it, and the ring went round. */
static void test_a_record_that_wraps(void)
{
	for (uint64_t at = RING_BYTES - 120; at <= RING_BYTES; at += 8) {
		struct mapped_file_name f = name_of(0, 33, 77, "/opt/own/program");

		begin();
		(void)put_mmap2(at, 0, 33, 77, "/opt/own/program");
		page.data_tail = page.data_head;
		CHECK(seen_mapped(&events, &f));
	}
}

/* Whoever names a file like a record. */
static void test_a_name_is_no_record(void)
{
	struct mapped_file_name f =
		name_of(0x01010101, 0x01010101, UINT64_C(0x0101010101010101), "/etc/secret");
	char path[200];

	begin();
	memset(path, 1, sizeof(path));
	(void)strcpy(path + 72, "/etc/secret");
	path[3] = 10;
	(void)put_mmap2(0, 8, 1, 5, path);
	CHECK(!seen_mapped(&events, &f));
}

int main(void)
{
	static struct cpu_events cpu;

	cpu.sideband = (struct ring){.page = &page, .data = data, .data_bytes = RING_BYTES};
	events.cpus.items = &cpu;
	events.cpus.n = 1;
	RUN(test_only_what_was_mapped);
	RUN(test_a_record_that_wraps);
	RUN(test_a_name_is_no_record);
	return 0;
}
