// SPDX-License-Identifier: Apache-2.0
//
// Part 12: what was captured, and how much of it is missing.

const losses = [
	['samples_lost', 'samples', 'samples lost: the kernel had no room in a ring'],
	['samples_dropped', 'samples', 'samples dropped: no room in the profile’s memory'],
	['samples_lost_with_process', 'samples', 'samples lost: a process of perfwalk that had them died'],
	['throttled', '', 'times the kernel slowed an event down'],
	['records_bad', '', 'ring records that contradict themselves'],
	['sideband_lost', '', 'mapping, fork or exit records lost: names may be missing'],
	['stacks_truncated', 'stacks', 'stacks cut: deeper than the copied stack bytes'],
	['stacks_left', 'stacks', 'stacks that continue on another stack, which is not copied'],
	['stacks_unreadable', 'stacks', 'stacks cut: the kernel’s copy of them ends too early'],
	['stacks_no_mapping', 'stacks', 'stacks that led to code in no known mapping'],
	['stacks_no_file', 'stacks', 'stacks that led to a file that could not be read'],
	['stacks_no_cfi', 'stacks', 'stacks that led to code without unwind information'],
	['stacks_bad_cfi', 'stacks', 'stacks that led to damaged unwind information'],
	['stacks_no_progress', 'stacks', 'stacks that lead back to themselves'],
	['stacks_too_deep', 'stacks', 'stacks with more frames than are kept'],
	['stacks_unproven', 'stacks', 'stacks whose runtime’s frames could not be proven'],
	['stacks_32_bit', 'stacks', 'stacks of 32-bit programs, which are not walked'],
	['stacks_no_regs', 'stacks', 'samples without user registers'],
	['stacks_runtime_late', 'stacks', 'stacks whose interpreter’s frames were not read in time'],
	['stacks_runtime_unread', 'stacks', 'stacks whose interpreter is not read, or not for this event'],
	['frames_unnamed', '', 'distinct addresses that no symbol covers'],
	['frames_put_off', '', 'of these, addresses in files that there was no time to read'],
	['samples_filtered', '', 'samples that the filters excluded'],
];

// Markers that stand for functions of a runtime. Of an interpreter the native stack is whole.
const unreadMarkers = new Set(['[interpreter not read in time]', '[interpreter not read]', '[runtime frames not proven]']);
const [UNREAD, CUT] = [1, 2];

function flagOf(symbol) {
	if (symbols.kind[symbol] !== MARKER)
		return 0;
	return unreadMarkers.has(symbols.name[symbol]) ? UNREAD : CUT;
}
// The samples whose innermost frame has no name, those whose stack is cut, and those that lack
// functions of a runtime alone.
function countIncomplete(c) {
	if (c.incomplete)
		return c.incomplete;
	const flags = new Uint8Array(c.tree.n);
	let unnamed = 0;
	let cut = 0;
	let unread = 0;

	for (let i = 1; i < c.tree.n; i++)
		flags[i] = flags[c.tree.parent[i]] | flagOf(c.tree.symbol[i]);
	for (let i = 0; i < c.samples.n; i++) {
		const node = c.samples.node[i];

		unnamed += c.tree.depth[node] > 1 && isUnnamed(c.tree.symbol[node]) ? c.samples.value[i] : 0;
		cut += flags[node] & CUT ? c.samples.value[i] : 0;
		unread += flags[node] === UNREAD ? c.samples.value[i] : 0;
	}
	c.incomplete = {unnamed, cut, unread};
	return c.incomplete;
}
function addFacts(list, c, label) {
	const {meta} = c;
	const add = (value, unit) => {
		const span = make('span');

		span.append(make('b', value), unit ? ' ' + unit : '');
		list.append(span);
	};

	if (label)
		add(label);
	if (meta.host)
		add(meta.host);
	if (meta.kernel)
		add(`Linux ${meta.kernel}`);
	if (meta.cpus)
		add(count(meta.cpus), meta.cpus === 1 ? 'CPU' : 'CPUs');
	if (meta.event)
		add(meta.event, meta.rate ? `at ${meta.rate} Hz` : amountText === duration ? 'measured' : 'sampled');
	if (meta.durationNs)
		add((meta.durationNs / 1e9).toFixed(1), 's');
	if (amountText)
		add(amountText(c.total), `of ${meta.event}`);
	else
		add(count(c.total), !eachCounts && (meta.periodNs || meta.periodEvents) ? `${unit} (${worth(c.total, meta)}${meta.periodEvents ? '' : ' of CPU time'})` : unit);
	if (c.counters.threads_idle_us)
		add(duration(c.counters.threads_idle_us * 1000), 'of idle threads left out (record --idle shows them)');
	if (meta.startMs)
		list.append(make('span', new Date(meta.startMs).toISOString().replace('T', ' ').slice(0, 19) + ' UTC'));
}
function addLosses(body, c) {
	const counters = c.counters;
	const bases = {samples: counters.samples + counters.samples_lost, stacks: counters.user_stacks + counters.stacks_no_regs};
	const row = (value, base, words, text = count(value)) => {
		const line = make('tr');

		line.append(make('td', text, 'number'), make('td', base ? percent(value, base) : '', 'number muted'), make('td', words));
		body.append(line);
	};

	for (const [name, base, words] of losses) {
		if (counters[name] || name === 'samples_lost')
			row(counters[name] || 0, bases[base], words);
	}
	const within = ['8k', '16k', '32k', '64k'].map((size) => counters[`stacks_within_${size}`]);
	const complete = within.reduce((sum, n) => sum + n, 0);

	if (complete)
		row(complete, bases.stacks, `stacks complete: ${percent(within[0], complete)} by their first 8K, ${percent(within[0] + within[1], complete)} by 16K, ${percent(complete - within[3], complete)} by 32K`);
	const {unnamed, unread} = countIncomplete(c);
	const what = amountText ? `of ${c.meta.event}` : 'samples';

	if (c.cut)
		row(c.cut, c.total, `${what} shown at a caller: the call tree was full`, valueText(c.cut));
	if (unread)
		row(unread, c.total, `${what} without functions of a runtime, which were not read in time or not proven`, valueText(unread));
	row(unnamed, c.total, `${what} in code without a name: its address is shown instead`, valueText(unnamed));
}
// Why a capture has no samples, and what to do.
function whyEmpty(counters) {
	const lost = (counters.samples_lost || 0) + (counters.samples_dropped || 0) + (counters.samples_lost_with_process || 0);

	if (lost)
		return `No samples: all ${count(lost)} were lost. Record at a lower rate (record -F).`;
	if (counters.samples_filtered)
		return `No samples: the options of the capture left out all ${count(counters.samples_filtered)}. Choose other processes, users, units or containers; perfwalk list shows what is there.`;
	if (counters.threads_idle_us)
		return 'No samples: threads only waited for work. record --off-cpu --idle shows where.';
	return 'No samples: nothing that was recorded used a CPU, or the event did not happen. Record for longer (record -d), or while the program works. record --off-cpu shows what idle threads wait for.';
}
function showHeader() {
	const {meta} = captures[0];
	const body = byId('quality-table').tBodies[0];
	const parts = captures.map((c) => {
		const {unnamed, cut, unread} = countIncomplete(c);
		const words = unread ? `, ${percent(unread, c.total)} without a runtime’s functions` : '';

		return `${percent(c.counters.samples_lost, c.counters.samples + c.counters.samples_lost)} lost, ${percent(cut, c.total)} cut, ${percent(unnamed, c.total)} unnamed${words}`;
	});

	byId('title').textContent = meta.title;
	document.title = `${meta.title} – ${meta.host || 'perfwalk'}`;
	captures.forEach((c, i) => {
		const line = make('p', undefined, 'facts');

		addFacts(line, c, comparing ? ['after', 'before'][i] : '');
		byId('facts').append(line);
		if (comparing) {
			const title = make('tr');

			title.append(make('th', ['after', 'before'][i]));
			body.append(title);
		}
		addLosses(body, c);
	});
	byId('quality-line').textContent = parts.join(' · before: ');
	byId('quality').classList.toggle('warn', captures.some((c) => {
		const {unnamed, cut, unread} = countIncomplete(c);

		return c.counters.samples_lost * 100 > c.counters.samples || (unnamed + cut + unread) * 20 > c.total;
	}));
}
function showLegend() {
	const there = new Set(symbols.kind);
	const changes = comparing ? [['less', changeColour(1, 0)], [counted ? 'as before, or noise' : 'as before', changeColour(1, 1)], ['more', changeColour(0, 1)]] : [];
	const marks = kinds.filter((k) => k.name && there.has(k.kind) && (!comparing || k.mark))
		.map((k) => [k.name, comparing ? changeColour(1, 1) : kindColour(k.kind), k.kind === MARKER ? 'hatched' : k.mark || '']);
	const named = new Set(Array.from(symbols.name, (_, symbol) => stateOf(symbol)));
	const states = Object.keys(stateColours).filter((name) => named.has(name)).map((name) => [name, stateColours[name][isDark() ? 1 : 0], '']);

	byId('legend').replaceChildren(...(byState ? states : changes.concat(marks)).map(([name, colour, mark]) => {
		const item = make('span');
		const box = make('i', undefined, mark);

		box.style.backgroundColor = colour;
		item.append(box, name);
		return item;
	}));
}
