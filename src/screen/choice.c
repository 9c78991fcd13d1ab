/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows a view shows; the lists and the tree use this. */
#include <stdio.h>
#include <string.h>

#include "src/screen/view.h"

bool top_view_matches(const struct top_view *v, const struct top_key *k)
{
	const char *const texts[] = {k->function, k->module, k->comm, k->owner};
	char pid[16];

	if (!v->filter[0])
		return true;
	for (int i = 0; i < 4; i++) {
		if (*texts[i] && regexec(&v->regex, texts[i], 0, NULL, 0) == 0)
			return true;
	}
	(void)snprintf(pid, sizeof(pid), "%u", k->pid);
	return k->pid && regexec(&v->regex, pid, 0, NULL, 0) == 0;
}

bool top_view_wants(const struct top_view *v, const struct top_table *sum, const struct top_row *r)
{
	const char *owner = strtab_get(&sum->strings, r->owner);

	return (!v->one_process || r->pid == v->pid) &&
	       (!v->one_owner || strcmp(*owner ? owner : "[none]", v->owner) == 0);
}
