/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Stacks that were walked earlier, as rows of this window. Their code is that of a->process now. */
#include <stdint.h>

struct attribution;
struct switch_stack;

/* The row of a stack; NULL: of one that nobody has seen. PROFILE_NONE where it does not fit. */
uint32_t attribution_known_stack(struct attribution *a, const struct switch_stack *known);
/* The same with the frame of an object that was waited for between the thread's entry and the
 * reason; object PROFILE_NONE: there is none. One that nobody has seen waits for a lock there. */
uint32_t attribution_waiting_stack(struct attribution *a, const struct switch_stack *known,
				   uint32_t object);
