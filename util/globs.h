/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists of globs, as in the config: "service.*, k8s.pod.name". */
#include <stdbool.h>

/* Is the text allowed: does a glob of allow (NULL: every text) match it, and no glob of deny (NULL:
 * no text)? */
bool globs_allow(const char *allow, const char *deny, const char *text);
