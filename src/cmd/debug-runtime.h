/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* perfwalk debug runtime PID: this process opens and stops, its child reads what it opened. */
struct view;

/* v: without inputs. The exit code; what is wrong was said. */
int debug_runtime(struct view *v, const char *pid);
