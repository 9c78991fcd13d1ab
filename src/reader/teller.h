/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The messages of a reader to the profiler, through a ring of frames. Each text is sent once. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/process/frame-record.h"

struct teller;

/* Makes a ring. Returns its descriptor, which is the caller's, or -errno. */
int teller_new(struct teller **ret);
struct teller *teller_free(struct teller *t);

/* The number of a text; sends the text if it is new. 0: it is empty, or there is no room. */
uint32_t teller_text(struct teller *t, const char *text);
/* Call it before the texts of a stack: makes room for as many as it may have. */
void teller_begin(struct teller *t);
/* Each sends a record. false: the ring is full. */
bool teller_stack(struct teller *t, const struct frame_record_stack *stack);
bool teller_context(struct teller *t, const struct frame_record_context *context);
bool teller_code(struct teller *t, const struct frame_record_code *code);
