/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Stacks that were walked earlier, as rows of this window, in the code that a->process has now. */
#include <stdint.h>

struct attribution;
struct switch_stack;

/* The row of a stack; NULL: of one that was never sampled. PROFILE_NONE: it does not fit. */
uint32_t attribution_known_stack(struct attribution *a, const struct switch_stack *known);
/* The row of such a stack with the frame of the object that the thread waits for, between its entry
 * and the reason; object PROFILE_NONE: none. A stack that was never sampled waits for a lock. */
uint32_t attribution_waiting_stack(struct attribution *a, const struct switch_stack *known,
				   uint32_t object);
