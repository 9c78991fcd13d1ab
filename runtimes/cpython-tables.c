/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "runtimes/arch.h"
#include "runtimes/cpython-tables.h"

enum {
	FIRST_MINOR = 6,
	FIRST_PUBLISHED = 13,
	LAST_MINOR = 15,
	PUBLISHED_WORDS = 96, /* that are looked into */
	MAX_FAR_OFFSET = 1 << 20,
};
/* The offset of a field that a release lacks. */
#define NO (-1)

/*
 * since_6: offsets in 3.6 to 3.12. words: where 3.13 to 3.15 publish the offset, in 8-byte words
 * after their cookie; 0: nowhere. limit: the largest published offset that our reads cover.
 */
static const struct cpython_field {
	const char *name;
	int16_t since_6[7];
	uint8_t words[3];
	uint32_t limit;
} fields[PY_N_VALUES] = {
	[PY_INTERPRETERS] = {"_PyRuntime.interpreters.head",
			     {0, 24, 32, 32, 32, 40, 40},
			     {5, 5, 5},
			     MAX_FAR_OFFSET},
	[PY_INTERP_NEXT] = {"interpreter.next", {0, 0, 0, 0, 0, 0, 0}, {8, 8, 8}, MAX_FAR_OFFSET},
	[PY_INTERP_THREADS] = {"interpreter.threads.head",
			       {8, 8, 8, 8, 8, 16, 72},
			       {9, 9, 9},
			       MAX_FAR_OFFSET},
	[PY_THREAD_PREVIOUS] = {"thread.prev",
				{0, 0, 0, 0, 0, 0, 0},
				{20, 23, 23},
				PYTHON_THREAD_BYTES},
	[PY_THREAD_NEXT] = {"thread.next",
			    {8, 8, 8, 8, 8, 8, 8},
			    {21, 24, 24},
			    PYTHON_THREAD_BYTES},
	[PY_THREAD_INTERP] = {"thread.interp",
			      {16, 16, 16, 16, 16, 16, 16},
			      {22, 25, 25},
			      PYTHON_THREAD_BYTES},
	[PY_THREAD_FRAME] = {"thread.frame",
			     {24, 24, 24, 24, 24, NO, NO},
			     {23, 26, 26},
			     PYTHON_THREAD_BYTES},
	[PY_THREAD_CFRAME] = {"thread.cframe", {NO, NO, NO, NO, NO, 56, 56}, {0}, 0},
	[PY_THREAD_ID] = {"thread.thread_id",
			  {152, 176, 176, 176, 176, 152, 136},
			  {24, 27, 30},
			  PYTHON_THREAD_BYTES},
	[PY_THREAD_NATIVE_ID] = {"thread.native_thread_id",
				 {NO, NO, NO, NO, NO, 160, 144},
				 {25, 28, 31},
				 PYTHON_THREAD_BYTES},
	[PY_THREAD_CHUNK] = {"thread.datastack_chunk",
			     {NO, NO, NO, NO, NO, 296, 232},
			     {26, 29, 32},
			     PYTHON_THREAD_BYTES},
	[PY_CFRAME_FRAME] = {"cframe.current_frame", {NO, NO, NO, NO, NO, 8, 0}, {0}, 0},
	[PY_FRAME_PREVIOUS] = {"frame.previous",
			       {24, 24, 24, 24, 24, 48, 8},
			       {29, 32, 40},
			       PYTHON_FRAME_BYTES},
	[PY_FRAME_CODE] = {"frame.code",
			   {32, 32, 32, 32, 32, 32, 0},
			   {30, 33, 41},
			   PYTHON_FRAME_BYTES},
	[PY_FRAME_PLACE] = {"frame.instruction",
			    {120, 104, 104, 104, 96, 56, 56},
			    {31, 34, 42},
			    PYTHON_FRAME_BYTES},
	[PY_FRAME_IS_ENTRY] = {"frame.is_entry", {NO, NO, NO, NO, NO, 68, NO}, {0}, 0},
	[PY_FRAME_OWNER] = {"frame.owner",
			    {NO, NO, NO, NO, NO, 69, 70},
			    {33, 36, 44},
			    PYTHON_FRAME_BYTES},
	[PY_FRAME_COPY] = {"frame.tlbc_index",
			   {NO, NO, NO, NO, NO, NO, NO},
			   {0, 38, 46},
			   PYTHON_FRAME_BYTES},
	[PY_CODE_FILE] = {"code.co_filename",
			  {96, 96, 104, 104, 104, 112, 112},
			  {35, 40, 48},
			  PYTHON_CODE_BYTES},
	[PY_CODE_NAME] = {"code.name",
			  {104, 104, 112, 112, 112, 128, 128},
			  {37, 42, 50},
			  PYTHON_CODE_BYTES},
	[PY_CODE_FIRST_LINE] = {"code.co_firstlineno",
				{36, 36, 40, 40, 40, 72, 68},
				{39, 44, 52},
				PYTHON_CODE_BYTES},
	[PY_CODE_LINES] = {"code.co_linetable",
			   {112, 112, 120, 120, 120, 136, 136},
			   {38, 43, 51},
			   PYTHON_CODE_BYTES},
	[PY_CODE_BYTECODE] = {"code.co_code_adaptive",
			      {NO, NO, NO, NO, NO, 184, 192},
			      {43, 48, 56},
			      PYTHON_CODE_BYTES},
	[PY_CODE_COPIES] = {"code.co_tlbc",
			    {NO, NO, NO, NO, NO, NO, NO},
			    {0, 49, 57},
			    PYTHON_CODE_BYTES},
	[PY_OBJECT_TYPE] = {"object.ob_type",
			    {8, 8, 8, 8, 8, 8, 8},
			    {45, 51, 59},
			    PYTHON_OBJECT_BYTES},
	[PY_OBJECT_SIZE] = {"object.ob_size",
			    {16, 16, 16, 16, 16, 16, 16},
			    {65, 75, 87},
			    PYTHON_OBJECT_BYTES},
	[PY_BYTES_DATA] = {"bytes.ob_sval",
			   {32, 32, 32, 32, 32, 32, 32},
			   {66, 76, 88},
			   PYTHON_OBJECT_BYTES},
	[PY_TEXT_LENGTH] = {"text.length",
			    {16, 16, 16, 16, 16, 16, 16},
			    {69, 79, 91},
			    PYTHON_OBJECT_BYTES},
	[PY_TEXT_STATE] = {"text.state",
			   {32, 32, 32, 32, 32, 32, 32},
			   {68, 78, 90},
			   PYTHON_OBJECT_BYTES},
	[PY_TEXT_ASCII] = {"text, ASCII characters",
			   {48, 48, 48, 48, 48, 48, 40},
			   {70, 80, 92},
			   PYTHON_OBJECT_BYTES},
	/* 3.13 and 3.14 do not publish it: a length and a pointer are between. */
	[PY_TEXT_OTHER] = {"text, other characters",
			   {72, 72, 72, 72, 72, 72, 56},
			   {0, 0, 93},
			   PYTHON_OBJECT_BYTES},
};

const char *cpython_value_name(enum cpython_value value)
{
	return (unsigned int)value < PY_N_VALUES ? fields[value].name : "";
}

/* ---- Which release ---- */

/* Functions that appeared with the minor version, for those that do not say it otherwise. */
static uint32_t guess_minor(const struct image *image, uint64_t runtime)
{
	static const struct {
		const char *function;
		uint32_t minor;
	} marks[] = {
		{"Py_NewRef", 10},
		{"PyFrame_GetCode", 9},
		{"PyConfig_InitPythonConfig", 8},
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
		if (image_symbol(image, marks[i].function))
			return marks[i].minor;
	}
	return runtime ? 7 : 6;
}

static void take_table(struct cpython_tables *t)
{
	for (unsigned int i = 0; i < PY_N_VALUES; i++)
		t->value[i] = fields[i].since_6[t->minor - FIRST_MINOR];
}

/* ---- Offsets that 3.13 and later publish ---- */

static bool take_published(struct cpython_tables *t, const uint64_t *words)
{
	for (unsigned int i = 0; i < PY_N_VALUES; i++) {
		const struct cpython_field *f = &fields[i];
		uint8_t word = f->words[t->minor - FIRST_PUBLISHED];

		t->value[i] = NO;
		if (word == 0)
			continue;
		if (words[word] > f->limit - 8)
			return false;
		t->value[i] = (int32_t)words[word];
	}
	if (t->value[PY_TEXT_OTHER] < 0)
		t->value[PY_TEXT_OTHER] = t->value[PY_TEXT_ASCII] + 16;
	/* Builds with the one lock have no copies of the bytecode, and say 0. */
	if (t->value[PY_FRAME_COPY] <= 0 || t->value[PY_CODE_COPIES] <= 0)
		t->value[PY_FRAME_COPY] = t->value[PY_CODE_COPIES] = NO;
	return true;
}

static int read_published(struct cpython_tables *t, const uint64_t *words, const char **ret_why)
{
	t->version = (uint32_t)words[1];
	t->minor = t->version >> 16 & 0xff;
	t->published = true;
	t->free_threaded = words[2] != 0;
	if (t->version >> 24 != 3 || t->minor < FIRST_PUBLISHED || t->minor > LAST_MINOR) {
		*ret_why = "its version is newer than any that is known";
		return -ENOTSUP;
	}
	if (!take_published(t, words)) {
		*ret_why = "the offsets that it publishes are too large to be true";
		return -ENOTSUP;
	}
	return 0;
}

/* ---- All ---- */

static int read_unpublished(struct cpython_tables *t, const struct image *image, uint64_t runtime,
			    const char **ret_why)
{
	uint64_t version = image_symbol(image, "Py_Version");

	if (version) {
		if (!memory_read(image->memory, version, &t->version, sizeof(t->version)))
			return -ENOENT;
		t->minor = t->version >> 16 & 0xff;
		if (t->version >> 24 != 3 || t->minor < 11 || t->minor >= FIRST_PUBLISHED) {
			*ret_why = "its version should publish its offsets, but does not";
			return -ENOTSUP;
		}
	} else {
		t->minor = guess_minor(image, runtime);
		t->version = UINT32_C(3) << 24 | t->minor << 16;
	}
	take_table(t);
	return 0;
}

int cpython_tables_read(struct cpython_tables *ret, const struct image *image, const char **ret_why)
{
	uint64_t runtime = image_symbol(image, "_PyRuntime"), head, words[PUBLISHED_WORDS];
	struct cpython_tables t = {.version = 0};
	int r;

	if (!image_symbol(image, "_PyEval_EvalFrameDefault") ||
	    (!runtime && !image_symbol(image, "_PyThreadState_Current")))
		return -ENOENT;
	if (runtime && !memory_read(image->memory, runtime, words, sizeof(words)))
		return -ENOENT;
	r = runtime && memcmp(words, "xdebugpy", 8) == 0
		    ? read_published(&t, words, ret_why)
		    : read_unpublished(&t, image, runtime, ret_why);
	if (r < 0)
		return r;
	/* 3.6 has a variable for each, of which this one is not exported. */
	head = image_symbol(image, "PyInterpreterState_Head");
	t.interpreters = runtime ? runtime + (uint64_t)t.value[PY_INTERPRETERS]
				 : arch_returned_variable(image->memory, head);
	if (!t.interpreters) {
		*ret_why = "its first interpreter cannot be found";
		return -ENOTSUP;
	}
	*ret = t;
	return 0;
}
