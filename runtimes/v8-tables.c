/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "runtimes/v8-tables.h"
#include "util/cleanup.h"

enum { N_ERAS = 5, N_NAMES = 3, MAX_OFFSET = 4096, MAX_TYPE = 65535 };
enum { ERA_9, ERA_10, ERA_11, ERA_12, ERA_13 };
#define NONE INT32_MIN

#define TYPE(a) "type_" a

/* Values that some version exports under another name, and the values of each era that exports
 * none. */
static const struct known {
	const char *text;
	const char *names[N_NAMES];
	int32_t eras[N_ERAS];
} known[V8_N_VALUES] = {
	[V8_TYPE_FUNCTION] = {"type of functions",
			      {TYPE("JSFunction__JS_FUNCTION_TYPE")},
			      {1059, 2065, 2066, 2066, 2065}},
	[V8_TYPE_SHARED] = {"type of SharedFunctionInfo",
			    {TYPE("SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE")},
			    {179, 257, 262, 274, 282}},
	[V8_TYPE_SCRIPT] = {"type of scripts",
			    {TYPE("Script__SCRIPT_TYPE")},
			    {112, 170, 167, 167, 167}},
	[V8_TYPE_SCOPE] = {"type of ScopeInfo",
			   {TYPE("ScopeInfo__SCOPE_INFO_TYPE")},
			   {178, 256, 261, 272, 280}},
	[V8_TYPE_BYTECODE] = {"type of bytecode",
			      {TYPE("BytecodeArray__BYTECODE_ARRAY_TYPE")},
			      {133, 195, 191, 205, 186}},
	[V8_TYPE_CODE] = {"type of code", {TYPE("Code__CODE_TYPE")}, {162, 240, 245, 206, 187}},
	[V8_TYPE_STREAM] = {"type of instructions",
			    {TYPE("InstructionStream__INSTRUCTION_STREAM_TYPE"),
			     TYPE("Code__CODE_TYPE")},
			    {162, 240, 252, 210, 192}},
	[V8_TYPE_INTERPRETER_DATA] = {"type of InterpreterData",
				      {TYPE("InterpreterData__INTERPRETER_DATA_TYPE")},
				      {105, 162, 159, 207, 188}},
	[V8_TYPE_FIXED_ARRAY] = {"type of arrays",
				 {TYPE("FixedArray__FIXED_ARRAY_TYPE")},
				 {119, 179, 175, 174, 205}},
	[V8_TYPE_NO_STRING] = {"first type of no strings",
			       {"FirstNonstringType"},
			       {64, 128, 128, 128, 128}},
	[V8_MAP_TYPE] = {"Map: type", {"class_Map__instance_type__uint16_t"}, {12, 12, 12, 12, 12}},
	[V8_FUNCTION_SHARED] = {"JSFunction: shared",
				{"class_JSFunction__shared__SharedFunctionInfo"},
				{24, 24, 24, 32, 32}},
	[V8_SHARED_DATA] = {"SharedFunctionInfo: data",
			    {"class_SharedFunctionInfo__function_data__Object"},
			    {8, 8, 8, 8, 8}},
	[V8_SHARED_NAME] =
		{"SharedFunctionInfo: name or scope",
		 {"class_SharedFunctionInfo__name_or_scope_info__Object",
		  "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
		  "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"},
		 {16, 16, 16, 16, 24}},
	[V8_SHARED_SCRIPT] = {"SharedFunctionInfo: script",
			      {"class_SharedFunctionInfo__script_or_debug_info__HeapObject",
			       "class_SharedFunctionInfo__script__Tagged_HeapObject_"},
			      {32, 32, 32, 32, 40}},
	[V8_SCRIPT_NAME] = {"Script: name", {"class_Script__name__Object"}, {16, 16, 16, 16, 16}},
	[V8_SCRIPT_SOURCE] = {"Script: source", {"class_Script__source__Object"}, {8, 8, 8, 8, 8}},
	[V8_SCRIPT_LINE_ENDS] = {"Script: line ends",
				 {"class_Script__line_ends__Object"},
				 {56, 56, 56, 56, 56}},
	[V8_SCRIPT_ID] = {"Script: id", {"class_Script__id__SMI"}, {64, 64, 64, 64, 64}},
	[V8_SCOPE_PLACE] = {"ScopeInfo: place", {NULL}, {0, 0, 0, 0, 32}},
	[V8_BYTECODE_POSITIONS] = {"BytecodeArray: positions", {NULL}, {32, 32, 32, 24, 24}},
	[V8_BYTECODE_DATA] = {"BytecodeArray: bytecode",
			      {"class_BytecodeArray__data__uintptr_t"},
			      {54, 56, 54, 64, 64}},
	[V8_CODE_DEOPT] = {"Code: deoptimization data", {NULL}, {16, 16, 16, 8, 8}},
	[V8_CODE_POSITIONS] = {"Code: positions", {NULL}, {24, 24, 24, 16, 16}},
	[V8_CODE_START] = {"Code: start of instructions",
			   {"class_Code__instruction_start__uintptr_t",
			    "class_Code__instruction_start__Address"},
			   {96, 128, 40, 40, 40}},
	[V8_CODE_SIZE] = {"Code: size of instructions",
			  {"class_Code__instruction_size__int"},
			  {40, 40, 56, 52, 56}},
	[V8_CODE_FLAGS] = {"Code: flags", {"class_Code__flags__uint32_t"}, {48, 48, 48, 48, 52}},
	[V8_DEOPT_LITERALS] = {"deoptimization data: literals",
			       {"DeoptimizationDataLiteralArrayIndex"},
			       {2, 2, 2, 2, 3}},
	[V8_DEOPT_SHARED] = {"deoptimization data: function",
			     {"DeoptimizationDataSharedFunctionInfoIndex",
			      "DeoptimizationDataWrappedSharedFunctionInfoIndex"},
			     {6, 6, 6, 6, 7}},
	[V8_DEOPT_INLININGS] = {"deoptimization data: inlinings",
				{"DeoptimizationDataInliningPositionsIndex"},
				{7, 7, 7, 7, 8}},
	[V8_FRAME_CONTEXT] = {"frame: context",
			      {"off_fp_context_or_frame_type"},
			      {-8, -8, -8, -8, -8}},
	[V8_FRAME_FUNCTION] = {"frame: function", {"off_fp_function"}, {-16, -16, -16, -16, -16}},
	[V8_FRAME_BYTECODE] = {"frame: bytecode",
			       {"off_fp_bytecode_array"},
			       {-32, -32, -32, -32, -32}},
	[V8_FRAME_OFFSET] = {"frame: place in it",
			     {"off_fp_bytecode_offset"},
			     {-40, -40, -40, -40, -40}},
	[V8_FRAME_WASM] = {"type of WebAssembly's frames",
			   {"frametype_WasmFrame"},
			   {4, 4, 4, 4, 4}},
	[V8_KIND_BASELINE] = {"kind of baseline code", {"CodeKindBaseline"}, {11, 11, 11, 10, 10}},
};

const char *v8_value_name(enum v8_value value)
{
	return known[value].text;
}

static bool read_version(struct v8_tables *t, const struct image *image)
{
	static const char *const names[] = {"_ZN2v88internal7Version6major_E",
					    "_ZN2v88internal7Version6minor_E",
					    "_ZN2v88internal7Version6build_E"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint64_t at = image_symbol(image, names[i]);

		if (!at || !memory_read(image->memory, at, &t->version[i], sizeof(t->version[i])))
			return false;
	}
	return true;
}

static bool find_exported(const struct image *image, const char *name, int32_t *ret)
{
	char symbol[128];
	uint64_t at;

	if (!name)
		return false;
	(void)snprintf(symbol, sizeof(symbol), "v8dbg_%s", name);
	at = image_symbol(image, symbol);
	return at && memory_read(image->memory, at, ret, sizeof(*ret));
}

/* Is a value of an image plausible? */
static bool is_sound(enum v8_value value, int32_t v)
{
	return v > -MAX_OFFSET && v < (value < V8_MAP_TYPE ? MAX_TYPE : MAX_OFFSET);
}

int v8_tables_read(struct v8_tables *ret, const struct image *image, const char **ret_why)
{
	struct v8_tables t = {.inline_code = false};
	int32_t word;
	uint32_t era;

	if (!read_version(&t, image))
		return -ENOENT;
	if (find_exported(image, "TaggedSize", &word) && word != 8) {
		*ret_why = "its pointers are compressed";
		return -ENOTSUP;
	}
	if (t.version[0] < 9 || t.version[0] > 14) {
		*ret_why = "its frames in this version are not known";
		return -ENOTSUP;
	}
	era = t.version[0] > 13 ? ERA_13 : t.version[0] - 9;
	for (unsigned int i = 0; i < V8_N_VALUES; i++) {
		t.value[i] = known[i].eras[era];
		for (int k = 0; k < N_NAMES && !t.exported[i]; k++)
			t.exported[i] =
				find_exported(image, known[i].names[k], &word) && is_sound(i, word);
		if (t.exported[i])
			t.value[i] = word;
	}
	t.inline_code = t.value[V8_TYPE_STREAM] == t.value[V8_TYPE_CODE];
	*ret = t;
	return 0;
}
