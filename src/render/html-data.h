/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A profile as the JSON object that the flame graph page reads: the call tree, the samples and the
 * facts about the capture. Safe inside a script element, whatever the names in the profile are.
 */
#include <stdio.h>

#include "src/profile/profile.h"
#include "src/render/render.h"

/* Writes the first type. before: this is the older capture of a comparison. all: the profile with
 * all types, for tables of several; NULL: there are none. 0 or -ENOMEM; errors stay with the
 * stream. */
int html_put_data(FILE *out, const struct profile *p, const struct profile *all,
		  const struct render_info *info, bool before);
