/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* perfwalk debug runtime PID: this process opens the memory and stops the threads; its child,
 * without privileges, reads them. */
struct view;

/* v: without inputs. Returns the exit code; errors are printed. */
int debug_runtime(struct view *v, const char *pid);
