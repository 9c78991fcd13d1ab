/* SPDX-License-Identifier: Apache-2.0 */
/* How much work a lookup may do, and what is refused. */
#include <errno.h>

#include "symbolize/dwarf-internal.h"

/* Many entries may share a list, which would be read many times. So the sum has a limit too. */
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
