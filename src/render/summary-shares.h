/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the summary says of shares of CPU time that samples may have wrong. */
#include <stdint.h>

#include "src/render/summary-page.h"

/* A line, if nearly all of the host's CPUs were busy and samples did not come at any time. */
void summary_put_uneven(const struct summary_page *pg, uint32_t n_cpus);
