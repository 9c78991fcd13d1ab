/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "runtimes/arch.h"
#include "runtimes/php-tables.h"

/* Releases in the order of their columns below. */
enum { PHP_7_4, PHP_8_0, PHP_8_1, PHP_8_2, PHP_8_3, PHP_8_4, PHP_8_5, N_RELEASES };

static const struct php_field {
	const char *name;
	int16_t since_7_4[N_RELEASES];
} fields[PHP_N_VALUES] = {
	[PHP_CURRENT_FRAME] = {"executor_globals.current_execute_data",
			       {488, 488, 488, 488, 488, 488, 512}},
	[PHP_FRAME_PLACE] = {"execute_data.opline", {0, 0, 0, 0, 0, 0, 0}},
	[PHP_FRAME_RETURN_VALUE] = {"execute_data.return_value", {16, 16, 16, 16, 16, 16, 16}},
	[PHP_FRAME_FUNCTION] = {"execute_data.func", {24, 24, 24, 24, 24, 24, 24}},
	[PHP_FRAME_THIS] = {"execute_data.This", {32, 32, 32, 32, 32, 32, 32}},
	[PHP_FRAME_INFO] = {"execute_data.This.u1.type_info", {40, 40, 40, 40, 40, 40, 40}},
	[PHP_FRAME_PREVIOUS] = {"execute_data.prev_execute_data", {48, 48, 48, 48, 48, 48, 48}},
	[PHP_FUNCTION_TYPE] = {"op_array.type", {0, 0, 0, 0, 0, 0, 0}},
	[PHP_FUNCTION_NAME] = {"op_array.function_name", {8, 8, 8, 8, 8, 8, 8}},
	[PHP_FUNCTION_CLASS] = {"op_array.scope", {16, 16, 16, 16, 16, 16, 16}},
	[PHP_FUNCTION_N_OPCODES] = {"op_array.last", {60, 68, 68, 80, 76, 96, 96}},
	[PHP_FUNCTION_OPCODES] = {"op_array.opcodes", {64, 72, 72, 88, 80, 104, 104}},
	[PHP_FUNCTION_FILE] = {"op_array.filename", {136, 144, 144, 152, 144, 168, 168}},
	[PHP_FUNCTION_FIRST_LINE] = {"op_array.line_start", {144, 152, 152, 160, 152, 176, 176}},
	[PHP_CLASS_NAME] = {"class_entry.name", {8, 8, 8, 8, 8, 8, 8}},
	[PHP_OPCODE_KIND] = {"op.extended_value", {20, 20, 20, 20, 20, 20, 20}},
	[PHP_OPCODE_LINE] = {"op.lineno", {24, 24, 24, 24, 24, 24, 24}},
	[PHP_OPCODE_NUMBER] = {"op.opcode", {28, 28, 28, 28, 28, 28, 28}},
	[PHP_STRING_HASH] = {"string.h", {8, 8, 8, 8, 8, 8, 8}},
	[PHP_STRING_LENGTH] = {"string.len", {16, 16, 16, 16, 16, 16, 16}},
	[PHP_STRING_BYTES] = {"string.val", {24, 24, 24, 24, 24, 24, 24}},
	[PHP_GENERATOR_FRAME] = {"generator.execute_data", {64, 64, 56, 56, 56, 56, 56}},
	[PHP_GENERATOR_PARENT] = {"generator.node.parent", {160, 160, 152, 152, 152, 152, 152}},
};

const char *php_value_name(enum php_value value)
{
	return (unsigned int)value < PHP_N_VALUES ? fields[value].name : "";
}

/* "Zend Engine v4.2.31, ...": the engine's version of PHP 8.2.31; 3.4.0 is that of all PHP 7.4. */
static bool read_version(struct php_tables *t, const struct image *image)
{
	static const char start[] = "Zend Engine v";
	uint64_t variable =
		arch_returned_variable(image->memory, image_symbol(image, "get_zend_version"));
	uint64_t at = variable ? memory_u64(image->memory, variable) : 0;
	char text[64];

	if (!at || !memory_text(image->memory, at, text, sizeof(text)) ||
	    strncmp(text, start, sizeof(start) - 1) != 0 ||
	    sscanf(text + sizeof(start) - 1, "%1u.%3u.%3u", &t->major, &t->minor, &t->micro) != 3)
		return false;
	t->major += 4;
	return true;
}

int php_tables_read(struct php_tables *ret, const struct image *image, const char **ret_why)
{
	struct php_tables t = {.major = 0};
	uint32_t release;

	if (!image_symbol(image, "execute_ex") || !image_symbol(image, "get_zend_version"))
		return -ENOENT;
	if (!image_symbol(image, "executor_globals")) {
		*ret_why = "it is a build with threads (ZTS)";
		return -ENOTSUP;
	}
	if (!read_version(&t, image))
		return -EAGAIN;
	release = t.major == 7 ? t.minor - 4 : t.minor + 1;
	if (t.major < 7 || t.major > 8 || (t.major == 7 && t.minor != 4) || release >= N_RELEASES) {
		*ret_why = "its version is older than 7.4, or newer than any that is known";
		return -ENOTSUP;
	}
	for (unsigned int i = 0; i < PHP_N_VALUES; i++)
		t.value[i] = fields[i].since_7_4[release];
	*ret = t;
	return 0;
}
