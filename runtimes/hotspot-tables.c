/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables are arrays of structures whose strides and field offsets are exported, too. They end
 * in an entry without a name. All in them is constant data of the library, and is checked for being
 * possible before it is used: a field lies within its structure, a variable in the library.
 */
#include <errno.h>
#include <stdlib.h>

#include "runtimes/hotspot-tables.h"
#include "util/cleanup.h"

enum {
	MAX_ENTRIES = 8192, /* of one table; real ones have 2000 */
	MAX_ENTRY = 256,
	MAX_FIELD_OFFSET = 65536,
	MAX_NAME = 96,
};

enum kind { STATIC, FIELD, SIZE, CONSTANT };

/* Several rows for one value: it is called differently in other versions. */
static const struct wanted {
	uint8_t value, kind;
	bool required;
	const char *type, *field;
} wanted[] = {
	{HS_HEAPS, STATIC, false, "CodeCache", "_heaps"},
	{HS_HEAP, STATIC, false, "CodeCache", "_heap"},
	{HS_LOW_BOUND, STATIC, false, "CodeCache", "_low_bound"},
	{HS_HIGH_BOUND, STATIC, false, "CodeCache", "_high_bound"},
	{HS_INTERPRETER_CODE, STATIC, true, "AbstractInterpreter", "_code"},
	{HS_CALL_STUB_RETURN, STATIC, true, "StubRoutines", "_call_stub_return_address"},
	{HS_VM_RELEASE, STATIC, false, "Abstract_VM_Version", "_s_vm_release"},
	{HS_VM_MAJOR, STATIC, false, "Abstract_VM_Version", "_vm_major_version"},
	{HS_ARRAY_LENGTH, FIELD, false, "GrowableArrayBase", "_len"},
	{HS_ARRAY_LENGTH, FIELD, false, "GenericGrowableArray", "_len"},
	{HS_ARRAY_DATA, FIELD, false, "GrowableArray<int>", "_data"},
	{HS_HEAP_MEMORY, FIELD, true, "CodeHeap", "_memory"},
	{HS_HEAP_SEGMAP, FIELD, true, "CodeHeap", "_segmap"},
	{HS_HEAP_LOG2_SEGMENT, FIELD, true, "CodeHeap", "_log2_segment_size"},
	{HS_SPACE_LOW, FIELD, true, "VirtualSpace", "_low"},
	{HS_SPACE_HIGH, FIELD, true, "VirtualSpace", "_high"},
	{HS_SPACE_FIRST, FIELD, false, "VirtualSpace", "_low_boundary"},
	{HS_SPACE_LAST, FIELD, false, "VirtualSpace", "_high_boundary"},
	{HS_QUEUE_BUFFER, FIELD, true, "StubQueue", "_stub_buffer"},
	{HS_QUEUE_LIMIT, FIELD, true, "StubQueue", "_buffer_limit"},
	{HS_CODELET_SIZE, FIELD, true, "InterpreterCodelet", "_size"},
	{HS_CODELET_DESCRIPTION, FIELD, true, "InterpreterCodelet", "_description"},
	{HS_BLOB_NAME, FIELD, true, "CodeBlob", "_name"},
	{HS_BLOB_SIZE, FIELD, true, "CodeBlob", "_size"},
	{HS_BLOB_FRAME_COMPLETE, FIELD, true, "CodeBlob", "_frame_complete_offset"},
	{HS_BLOB_FRAME_SIZE, FIELD, true, "CodeBlob", "_frame_size"},
	{HS_BLOB_DATA_OFFSET, FIELD, true, "CodeBlob", "_data_offset"},
	{HS_BLOB_CODE_BEGIN, FIELD, false, "CodeBlob", "_code_begin"},
	{HS_BLOB_CODE_END, FIELD, false, "CodeBlob", "_code_end"},
	{HS_BLOB_CODE_OFFSET, FIELD, false, "CodeBlob", "_code_offset"},
	{HS_BLOB_MUTABLE_DATA, FIELD, false, "CodeBlob", "_mutable_data"},
	{HS_BLOB_RELOCATION_SIZE, FIELD, false, "CodeBlob", "_relocation_size"},
	{HS_NMETHOD_METHOD, FIELD, true, "nmethod", "_method"},
	{HS_NMETHOD_METHOD, FIELD, true, "CompiledMethod", "_method"},
	{HS_NMETHOD_COMPILE_ID, FIELD, true, "nmethod", "_compile_id"},
	{HS_NMETHOD_COMP_LEVEL, FIELD, true, "nmethod", "_comp_level"},
	{HS_NMETHOD_ORIG_PC_OFFSET, FIELD, true, "nmethod", "_orig_pc_offset"},
	{HS_NMETHOD_VERIFIED_ENTRY, FIELD, false, "nmethod", "_verified_entry_point"},
	{HS_NMETHOD_VERIFIED_ENTRY_OFFSET, FIELD, false, "nmethod", "_verified_entry_offset"},
	{HS_NMETHOD_DEOPT, FIELD, false, "CompiledMethod", "_deopt_handler_begin"},
	{HS_NMETHOD_DEOPT_MH, FIELD, false, "CompiledMethod", "_deopt_mh_handler_begin"},
	{HS_NMETHOD_DEOPT_OFFSET, FIELD, false, "nmethod", "_deopt_handler_offset"},
	{HS_NMETHOD_DEOPT_MH_OFFSET, FIELD, false, "nmethod", "_deopt_mh_handler_offset"},
	{HS_NMETHOD_DEOPT_OFFSET, FIELD, false, "nmethod", "_deoptimize_offset"},
	{HS_NMETHOD_DEOPT_MH_OFFSET, FIELD, false, "nmethod", "_deoptimize_mh_offset"},
	{HS_NMETHOD_STUB_OFFSET, FIELD, false, "nmethod", "_stub_offset"},
	{HS_NMETHOD_SCOPES_PCS_OFFSET, FIELD, true, "nmethod", "_scopes_pcs_offset"},
	{HS_NMETHOD_DEPENDENCIES_OFFSET, FIELD, false, "nmethod", "_dependencies_offset"},
	{HS_NMETHOD_SCOPES_DATA, FIELD, false, "CompiledMethod", "_scopes_data_begin"},
	{HS_NMETHOD_SCOPES_DATA_OFFSET, FIELD, false, "nmethod", "_scopes_data_offset"},
	{HS_NMETHOD_METADATA_OFFSET, FIELD, false, "nmethod", "_metadata_offset"},
	{HS_NMETHOD_IMMUTABLE_DATA, FIELD, false, "nmethod", "_immutable_data"},
	{HS_NMETHOD_IMMUTABLE_DATA_SIZE, FIELD, false, "nmethod", "_immutable_data_size"},
	{HS_PC_DESC_PC_OFFSET, FIELD, true, "PcDesc", "_pc_offset"},
	{HS_PC_DESC_SCOPE_OFFSET, FIELD, true, "PcDesc", "_scope_decode_offset"},
	{HS_METHOD_CONST, FIELD, true, "Method", "_constMethod"},
	{HS_CONST_CONSTANTS, FIELD, true, "ConstMethod", "_constants"},
	{HS_CONST_FLAGS, FIELD, true, "ConstMethod", "_flags"},
	{HS_CONST_FLAGS, FIELD, true, "ConstMethod", "_flags._flags"},
	{HS_CONST_CODE_SIZE, FIELD, true, "ConstMethod", "_code_size"},
	{HS_CONST_NAME_INDEX, FIELD, true, "ConstMethod", "_name_index"},
	{HS_CONST_SIGNATURE_INDEX, FIELD, true, "ConstMethod", "_signature_index"},
	{HS_POOL_TAGS, FIELD, true, "ConstantPool", "_tags"},
	{HS_POOL_HOLDER, FIELD, true, "ConstantPool", "_pool_holder"},
	{HS_POOL_LENGTH, FIELD, true, "ConstantPool", "_length"},
	{HS_POOL_SOURCE_FILE_INDEX, FIELD, false, "ConstantPool", "_source_file_name_index"},
	{HS_CLASS_SOURCE_FILE_INDEX, FIELD, false, "InstanceKlass", "_source_file_name_index"},
	{HS_CLASS_CONSTANTS, FIELD, true, "InstanceKlass", "_constants"},
	{HS_CLASS_NAME, FIELD, true, "Klass", "_name"},
	{HS_BYTES_DATA, FIELD, true, "Array<u1>", "_data"},
	{HS_SYMBOL_LENGTH, FIELD, true, "Symbol", "_length"},
	{HS_SYMBOL_BODY, FIELD, true, "Symbol", "_body[0]"},
	{HS_SYMBOL_BODY, FIELD, true, "Symbol", "_body"},
	{HS_HEAP_BLOCK_BYTES, SIZE, true, "HeapBlock", ""},
	{HS_NMETHOD_BYTES, SIZE, true, "nmethod", ""},
	{HS_BLOB_BYTES, SIZE, true, "CodeBlob", ""},
	{HS_PC_DESC_BYTES, SIZE, true, "PcDesc", ""},
	{HS_CONST_BYTES, SIZE, true, "ConstMethod", ""},
	{HS_POOL_BYTES, SIZE, true, "ConstantPool", ""},
	{HS_CODELET_BYTES, SIZE, true, "InterpreterCodelet", ""},
	{HS_HAS_LINES, CONSTANT, true, "ConstMethod::_has_linenumber_table", ""},
	{HS_HAS_LINES, CONSTANT, true, "ConstMethodFlags::_misc_has_linenumber_table", ""},
	{HS_SENDER_SP_SLOT, CONSTANT, false, "frame::interpreter_frame_sender_sp_offset", ""},
};

/* ---- One of the exported tables ---- */

enum { NAME, SECOND, TYPE, IS_STATIC, OFFSET, ADDRESS, VALUE, N_PARTS };

static const struct shape {
	const char *table, *stride;
	const char *parts[N_PARTS]; /* NULL: it has no such part */
} structs =
	{
		"gHotSpotVMStructs",
		"gHotSpotVMStructEntryArrayStride",
		{"gHotSpotVMStructEntryTypeNameOffset", "gHotSpotVMStructEntryFieldNameOffset",
		 "gHotSpotVMStructEntryTypeStringOffset", "gHotSpotVMStructEntryIsStaticOffset",
		 "gHotSpotVMStructEntryOffsetOffset", "gHotSpotVMStructEntryAddressOffset"},
},
  types =
	  {
		  "gHotSpotVMTypes",
		  "gHotSpotVMTypeEntryArrayStride",
		  {"gHotSpotVMTypeEntryTypeNameOffset", NULL, NULL, NULL,
		   "gHotSpotVMTypeEntrySizeOffset"},
},
  constants = {
	  "gHotSpotVMIntConstants",
	  "gHotSpotVMIntConstantEntryArrayStride",
	  {"gHotSpotVMIntConstantEntryNameOffset", NULL, NULL, NULL, NULL, NULL,
	   "gHotSpotVMIntConstantEntryValueOffset"},
};

struct table {
	const struct image *image;
	const struct shape *shape;
	uint64_t at, stride;
	uint64_t parts[N_PARTS];
};

static int open_table(struct table *ret, const struct image *image, const struct shape *shape)
{
	struct table t = {.image = image, .shape = shape};
	uint64_t symbol = image_symbol(image, shape->table);

	t.at = symbol ? memory_u64(image->memory, symbol) : 0;
	symbol = image_symbol(image, shape->stride);
	t.stride = symbol ? memory_u64(image->memory, symbol) : 0;
	if (!t.at || t.stride < 16 || t.stride > MAX_ENTRY)
		return -ENOENT;
	for (unsigned int i = 0; i < N_PARTS; i++) {
		if (!shape->parts[i])
			continue;
		symbol = image_symbol(image, shape->parts[i]);
		t.parts[i] = symbol ? memory_u64(image->memory, symbol) : MAX_ENTRY;
		if (t.parts[i] + 8 > t.stride && t.parts[i] + 4 != t.stride)
			return -ENOENT;
	}
	*ret = t;
	return 0;
}

struct entry {
	char name[MAX_NAME], second[MAX_NAME], type[MAX_NAME];
	uint64_t offset, address;
	int32_t value;
	bool is_static;
};

/* false: the table has ended, or cannot be read. */
static bool read_entry(const struct table *t, uint32_t row, struct entry *ret)
{
	struct memory *m = t->image->memory;
	uint8_t bytes[MAX_ENTRY];
	uint64_t name, second = 0, type = 0;
	int32_t is_static = 0;

	*ret = (struct entry){.value = 0};
	if (!memory_read(m, t->at + row * t->stride, bytes, t->stride))
		return false;
	memcpy(&name, bytes + t->parts[NAME], 8);
	if (!name || !memory_text(m, name, ret->name, sizeof(ret->name)))
		return false;
	if (t->shape->parts[SECOND])
		memcpy(&second, bytes + t->parts[SECOND], 8);
	if (second && !memory_text(m, second, ret->second, sizeof(ret->second)))
		return false;
	if (t->shape->parts[TYPE])
		memcpy(&type, bytes + t->parts[TYPE], 8);
	if (type && !memory_text(m, type, ret->type, sizeof(ret->type)))
		return false;
	if (t->shape->parts[IS_STATIC])
		memcpy(&is_static, bytes + t->parts[IS_STATIC], 4);
	if (t->shape->parts[OFFSET])
		memcpy(&ret->offset, bytes + t->parts[OFFSET], 8);
	if (t->shape->parts[ADDRESS])
		memcpy(&ret->address, bytes + t->parts[ADDRESS], 8);
	if (t->shape->parts[VALUE])
		memcpy(&ret->value, bytes + t->parts[VALUE], 4);
	ret->is_static = is_static != 0;
	return true;
}

/* ---- What is wanted of it ---- */

static bool is_possible(const struct image *image, enum kind kind, int64_t value)
{
	switch (kind) {
	case STATIC:
		return (uint64_t)value >= image->start && (uint64_t)value < image->end;
	case FIELD:
		return value >= 0 && value < MAX_FIELD_OFFSET;
	case SIZE:
		return value > 0 && value < MAX_FIELD_OFFSET;
	default:
		return value > -MAX_FIELD_OFFSET && value < MAX_FIELD_OFFSET;
	}
}

static void take(struct hotspot_tables *ret, const struct table *t, const struct entry *e,
		 enum kind kind)
{
	int64_t value = kind == STATIC	   ? (int64_t)e->address
			: kind == CONSTANT ? e->value
					   : (int64_t)e->offset;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		const struct wanted *w = &wanted[i];

		if (w->kind != kind || strcmp(w->type, e->name) != 0 ||
		    strcmp(w->field, e->second) != 0 || !is_possible(t->image, kind, value))
			continue;
		ret->value[w->value] = value;
		ret->known[w->value] = true;
		ret->narrow[w->value] = strstr(e->type, "16") || strcmp(e->type, "u2") == 0;
	}
}

static int read_table(struct hotspot_tables *ret, const struct image *image,
		      const struct shape *shape)
{
	struct table t;
	struct entry e;
	int r = open_table(&t, image, shape);

	for (uint32_t row = 0; r == 0 && row < MAX_ENTRIES && read_entry(&t, row, &e); row++)
		take(ret, &t, &e,
		     shape == &constants ? CONSTANT
		     : shape == &types	 ? SIZE
		     : e.is_static	 ? STATIC
					 : FIELD);
	return r;
}

/* One heap, and all that later versions have in its place. */
static const char *find_missing_heaps(const struct hotspot_tables *t)
{
	static const enum hotspot_value one[] = {HS_SPACE_FIRST, HS_SPACE_LAST},
					many[] = {HS_HEAPS,	   HS_LOW_BOUND,  HS_HIGH_BOUND,
						  HS_ARRAY_LENGTH, HS_ARRAY_DATA, HS_VM_MAJOR};
	const enum hotspot_value *values = t->known[HS_HEAP] ? one : many;
	size_t n = t->known[HS_HEAP] ? ARRAY_SIZE(one) : ARRAY_SIZE(many);

	for (size_t i = 0; i < n; i++) {
		if (!t->known[values[i]])
			return hotspot_value_name(values[i]);
	}
	return NULL;
}

/* Each version has one of these. */
static const char *find_missing(const struct hotspot_tables *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (wanted[i].required && !t->known[wanted[i].value])
			return hotspot_value_name(wanted[i].value);
	}
	if (!t->known[HS_BLOB_CODE_BEGIN] && !t->known[HS_BLOB_CODE_OFFSET])
		return "CodeBlob::_code_begin";
	if (!t->known[HS_NMETHOD_SCOPES_DATA] && !t->known[HS_NMETHOD_SCOPES_DATA_OFFSET])
		return "nmethod::_scopes_data_offset";
	if (!t->known[HS_NMETHOD_METADATA_OFFSET] &&
	    !(t->known[HS_BLOB_MUTABLE_DATA] && t->known[HS_BLOB_RELOCATION_SIZE]))
		return "nmethod::_metadata_offset";
	return find_missing_heaps(t);
}

int hotspot_tables_read(struct hotspot_tables *ret, const struct image *image,
			const char **ret_missing)
{
	struct memory_pages *pages = memory_pages_new(image->memory);
	struct hotspot_tables t = {.known = {false}};
	struct image paged = *image;
	int r = pages ? 0 : -ENOMEM;

	if (pages)
		paged.memory = memory_of_pages(pages);
	if (r == 0)
		r = read_table(&t, &paged, &structs);
	if (r == 0)
		r = read_table(&t, &paged, &types);
	if (r == 0)
		r = read_table(&t, &paged, &constants);
	free(pages);
	if (r < 0)
		return r;
	*ret_missing = find_missing(&t);
	if (*ret_missing)
		return -ENOTSUP;
	*ret = t;
	return 0;
}

/* The first way it is called that is known. */
const char *hotspot_value_name(enum hotspot_value value)
{
	static char text[HS_N_VALUES][MAX_NAME];

	if ((unsigned int)value >= HS_N_VALUES)
		return "";
	for (size_t i = 0; !text[value][0] && i < ARRAY_SIZE(wanted); i++) {
		if (wanted[i].value != value)
			continue;
		(void)stpcpy(
			stpcpy(stpcpy(text[value], wanted[i].type), *wanted[i].field ? "::" : ""),
			wanted[i].field);
	}
	return text[value];
}
