/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists of globs, as in the config: "service.*, k8s.pod.name". */
#include <stdbool.h>

/* An allowed text: a glob of allow matches it, or there is none; and none of deny does. NULL: none.
 */
bool globs_allow(const char *allow, const char *deny, const char *text);
