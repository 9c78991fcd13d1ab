/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where HotSpot keeps what: offsets of fields, addresses of static variables, sizes of types and
 * constants, from the tables that every libjvm.so exports for the serviceability agent
 * (gHotSpotVMStructs and its kin; vmStructs.cpp of OpenJDK).
 */
#include <stdbool.h>
#include <stdint.h>

#include "runtimes/image.h"

enum hotspot_value {
	/* Static variables: their addresses. */
	HS_HEAPS, /* of the code cache, */
	HS_HEAP,  /* or the only one: up to 8 */
	HS_LOW_BOUND,
	HS_HIGH_BOUND,
	HS_INTERPRETER_CODE,
	HS_CALL_STUB_RETURN,
	HS_VM_RELEASE,
	HS_VM_MAJOR,
	/* Offsets of fields. */
	HS_ARRAY_LENGTH, /* of a GrowableArray */
	HS_ARRAY_DATA,
	HS_HEAP_MEMORY,
	HS_HEAP_SEGMAP,
	HS_HEAP_LOG2_SEGMENT,
	HS_SPACE_LOW,
	HS_SPACE_HIGH,
	HS_SPACE_FIRST, /* what is reserved */
	HS_SPACE_LAST,
	HS_QUEUE_BUFFER, /* of a StubQueue */
	HS_QUEUE_LIMIT,
	HS_CODELET_SIZE,
	HS_CODELET_DESCRIPTION,
	HS_BLOB_NAME,
	HS_BLOB_SIZE,
	HS_BLOB_FRAME_COMPLETE,
	HS_BLOB_FRAME_SIZE,
	HS_BLOB_DATA_OFFSET,
	HS_BLOB_CODE_BEGIN,  /* up to 21 or so, */
	HS_BLOB_CODE_END,    /* */
	HS_BLOB_CODE_OFFSET, /* and since */
	HS_BLOB_MUTABLE_DATA,
	HS_BLOB_RELOCATION_SIZE,
	HS_NMETHOD_METHOD,
	HS_NMETHOD_COMPILE_ID,
	HS_NMETHOD_COMP_LEVEL,
	HS_NMETHOD_ORIG_PC_OFFSET,
	HS_NMETHOD_VERIFIED_ENTRY,	  /* an address, */
	HS_NMETHOD_VERIFIED_ENTRY_OFFSET, /* or so far behind the code's beginning */
	HS_NMETHOD_DEOPT,
	HS_NMETHOD_DEOPT_MH,
	HS_NMETHOD_DEOPT_OFFSET,
	HS_NMETHOD_DEOPT_MH_OFFSET,
	HS_NMETHOD_STUB_OFFSET,
	HS_NMETHOD_SCOPES_PCS_OFFSET,
	HS_NMETHOD_DEPENDENCIES_OFFSET, /* the end of the former */
	HS_NMETHOD_SCOPES_DATA,
	HS_NMETHOD_SCOPES_DATA_OFFSET,
	HS_NMETHOD_METADATA_OFFSET,
	HS_NMETHOD_IMMUTABLE_DATA,
	HS_NMETHOD_IMMUTABLE_DATA_SIZE,
	HS_PC_DESC_PC_OFFSET,
	HS_PC_DESC_SCOPE_OFFSET,
	HS_METHOD_CONST,
	HS_CONST_CONSTANTS,
	HS_CONST_FLAGS,
	HS_CONST_CODE_SIZE,
	HS_CONST_NAME_INDEX,
	HS_CONST_SIGNATURE_INDEX,
	HS_POOL_TAGS,
	HS_POOL_HOLDER,
	HS_POOL_LENGTH,
	HS_POOL_SOURCE_FILE_INDEX,
	HS_CLASS_SOURCE_FILE_INDEX,
	HS_CLASS_CONSTANTS,
	HS_CLASS_NAME,
	HS_BYTES_DATA, /* of an Array<u1> */
	HS_SYMBOL_LENGTH,
	HS_SYMBOL_BODY,
	/* Sizes. */
	HS_HEAP_BLOCK_BYTES,
	HS_NMETHOD_BYTES,
	HS_BLOB_BYTES,
	HS_PC_DESC_BYTES,
	HS_CONST_BYTES,
	HS_POOL_BYTES,
	HS_CODELET_BYTES,
	/* Constants. */
	HS_HAS_LINES,
	HS_SENDER_SP_SLOT, /* in words from the frame pointer */
	HS_N_VALUES
};

struct hotspot_tables {
	int64_t value[HS_N_VALUES];
	bool known[HS_N_VALUES];
	bool narrow[HS_N_VALUES]; /* a number of 16 bits, where other versions have 32 */
};

/*
 * Reads the tables of the libjvm.so at `image` within the budget of its memory. 0; -ENOENT: it
 * exports none; -ENOTSUP: something in them is missing or cannot be, *ret_missing says what (a
 * literal); -ENOMEM.
 */
int hotspot_tables_read(struct hotspot_tables *ret, const struct image *image,
			const char **ret_missing);
/* "CodeBlob::_size" ...: what the value is called in the tables. */
const char *hotspot_value_name(enum hotspot_value value);
