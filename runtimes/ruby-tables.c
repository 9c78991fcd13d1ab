/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "runtimes/arch.h"
#include "runtimes/ruby-tables.h"

/* Releases in the order of their columns below. */
enum { RUBY_2_7, RUBY_3_0, RUBY_3_1, RUBY_3_2, RUBY_3_3, RUBY_3_4, N_RELEASES };
/* The offset of a field that a release lacks. */
#define NO (-1)
static const struct ruby_field {
	const char *name;
	int16_t since_2_7[N_RELEASES];
} fields[RB_N_VALUES] = {
	[RB_VM_RACTORS] = {"vm.ractor.set", {NO, 8, 8, 8, 8, 8}},
	[RB_VM_THREADS] = {"vm.living_threads", {312, NO, NO, NO, NO, NO}},
	[RB_RACTOR_NODE] = {"ractor.vmlr_node", {NO, 568, 568, 568, 432, 432}},
	[RB_RACTOR_THREADS] = {"ractor.threads.set", {NO, 304, 304, 304, 256, 256}},
	[RB_THREAD_NODE] = {"thread.lt_node", {0, 0, 0, 0, 0, 0}},
	[RB_THREAD_VM] = {"thread.vm", {24, 32, 32, 32, 32, 32}},
	[RB_THREAD_CONTEXT] = {"thread.ec", {32, 40, 40, 48, 48, 48}},
	[RB_THREAD_NATIVE] = {"thread.nt", {NO, NO, NO, 40, 40, 40}},
	[RB_THREAD_ID] = {"thread.thread_id", {72, 80, 80, 8, 16, 16}},
	[RB_CONTEXT_STACK] = {"ec.vm_stack", {0, 0, 0, 0, 0, 0}},
	[RB_CONTEXT_SIZE] = {"ec.vm_stack_size", {8, 8, 8, 8, 8, 8}},
	[RB_CONTEXT_FRAME] = {"ec.cfp", {16, 16, 16, 16, 16, 16}},
	[RB_FRAME_PLACE] = {"control_frame.pc", {0, 0, 0, 0, 0, 0}},
	[RB_FRAME_CODE] = {"control_frame.iseq", {16, 16, 16, 16, 16, 16}},
	[RB_FRAME_ENVIRONMENT] = {"control_frame.ep", {32, 32, 32, 32, 32, 32}},
	[RB_FRAME_BYTES] = {"control_frame, bytes", {56, 56, 64, 64, 56, 56}},
	[RB_CODE_BODY] = {"iseq.body", {16, 16, 16, 16, 16, 16}},
	[RB_BODY_TYPE] = {"iseq_body.type", {0, 0, 0, 0, 0, 0}},
	[RB_BODY_SIZE] = {"iseq_body.iseq_size", {4, 4, 4, 4, 4, 4}},
	[RB_BODY_ENCODED] = {"iseq_body.iseq_encoded", {8, 8, 8, 8, 8, 8}},
	[RB_BODY_PATH] = {"iseq_body.location.pathobj", {64, 64, 64, 64, 64, 64}},
	[RB_BODY_LABEL] = {"iseq_body.location.label", {80, 80, 80, 80, 80, 80}},
	[RB_BODY_FIRST_LINE] = {"iseq_body.location.first_lineno", {88, 88, 88, 88, 88, 88}},
	[RB_BODY_LINES] = {"iseq_body.insns_info.body", {120, 120, 120, 112, 112, 112}},
	[RB_BODY_N_LINES] = {"iseq_body.insns_info.size", {136, 136, 136, 128, 128, 128}},
	[RB_BODY_INDEX] = {"iseq_body.insns_info.succ_index", {144, 144, 144, 136, 136, 136}},
	[RB_BODY_PARENT] = {"iseq_body.parent_iseq", {NO, NO, NO, NO, NO, 160}},
	[RB_LINE_BYTES] = {"insn_info_entry, bytes", {8, 8, 12, 12, 12, 12}},
	[RB_METHOD_DEFINITION] = {"method_entry.def", {16, 16, 16, 16, 16, 16}},
	[RB_DEFINITION_NAME] = {"method_definition.original_id", {32, 32, 32, 32, 32, 32}},
	[RB_LAST_OPERATOR] = {"tLAST_OP_ID", {168, 168, 169, 169, 169, 170}},
};

/* Of glibc's pthread_mutex_t on x86_64, where the offsets were taken. Its other types that are in
 * these structs have one size everywhere. */
#define LOCK_BYTES 40

/* How many of them are in front of a field, in all releases that have it. */
static const uint8_t n_locks[RB_N_VALUES] = {
	[RB_VM_THREADS] = 2,
	[RB_RACTOR_NODE] = 2,
	[RB_RACTOR_THREADS] = 1,
};

const char *ruby_value_name(enum ruby_value value)
{
	return (unsigned int)value < RB_N_VALUES ? fields[value].name : "";
}

int ruby_tables_read(struct ruby_tables *ret, const struct image *image, const char **ret_why)
{
	struct ruby_tables t = {.major = 0};
	uint64_t version = image_symbol(image, "ruby_version");
	uint32_t release;
	char text[32];

	if (!version || !image_symbol(image, "ruby_vm_at_exit") ||
	    !memory_text(image->memory, version, text, sizeof(text)) ||
	    sscanf(text, "%1u.%2u.%3u", &t.major, &t.minor, &t.micro) != 3)
		return -ENOENT;
	release = t.major == 2 ? t.minor - 7 : t.minor + 1;
	if (t.major < 2 || t.major > 3 || (t.major == 2 && t.minor != 7) || release >= N_RELEASES) {
		*ret_why = "its version is older than 2.7, or newer than any that is known";
		return -ENOTSUP;
	}
	if (!arch_lock_bytes) {
		*ret_why = "its threads cannot be found on this processor";
		return -ENOTSUP;
	}
	t.int_lines = t.length_in_text = release >= RUBY_3_2;
	for (unsigned int i = 0; i < RB_N_VALUES; i++) {
		t.value[i] = fields[i].since_2_7[release];
		if (t.value[i] != NO)
			t.value[i] += n_locks[i] * ((int32_t)arch_lock_bytes - LOCK_BYTES);
	}
	t.tried = arch_lock_bytes == LOCK_BYTES || release == RUBY_2_7 || release == RUBY_3_1 ||
		  release == RUBY_3_3;
	*ret = t;
	return 0;
}
