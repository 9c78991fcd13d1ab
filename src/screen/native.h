/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A sum without the native functions of interpreters. As in other outputs, the file whose functions
 * call a runtime's in a stack is its interpreter; the stacks are the paths of the tree.
 */
#include "src/screen/model.h"

/* out is emptied first. */
void top_hide_native(const struct top_table *sum, struct top_table *out);
