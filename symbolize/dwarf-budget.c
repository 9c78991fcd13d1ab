/* SPDX-License-Identifier: Apache-2.0 */
/* What a lookup may cost, and what is not read. */
#include <errno.h>

#include "symbolize/dwarf-internal.h"

/* Lists that many entries share would be read many times: the sum has a limit too. */
bool dwarf_work(struct dwarf *d, uint64_t n)
{
	bool enough;

	d = d->main ? d->main : d;
	enough = d->work >= n;
	d->work -= enough ? n : d->work;
	return enough;
}

void dwarf_refuse(struct dwarf *d, int reason)
{
	d->n_refused++;
	if (reason == -ENOMEM)
		(d->main ? d->main : d)->no_memory = true;
}
