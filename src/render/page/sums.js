// SPDX-License-Identifier: Apache-2.0
//
// Part 3: sums over the selected samples: by node of the captures' trees, by function, module and
// container, and the two trees around one function.

// filter: null, or {kind: 'process' | 'thread' | 'container' | 'cpu', key}; range: null, or [from, to) in us.
function filterKeys(c, kind) {
	const {samples, threads} = c;

	return {
		process: (i) => symbols.name[threads[samples.thread[i]].process],
		thread: (i) => `${threads[samples.thread[i]].name} (${threads[samples.thread[i]].tid})`,
		container: (i) => threads[samples.thread[i]].owner,
		cpu: (i) => String(samples.cpu[i]),
	}[kind];
}
function selectSamples(c, filter, range) {
	const chosen = new Int32Array(c.samples.n);
	const key = filter ? filterKeys(c, filter.kind) : null;
	const source = filter && (filter.kind === 'cpu' ? c.samples.cpu : c.samples.thread);
	const known = new Map();
	let n = 0;

	for (let i = 0; i < c.samples.n; i++) {
		if (range && (c.samples.time[i] < range[0] || c.samples.time[i] >= range[1]))
			continue;
		if (filter) {
			if (!known.has(source[i]))
				known.set(source[i], key(i) === filter.key);
			if (!known.get(source[i]))
				continue;
		}
		chosen[n++] = i;
	}
	return chosen.subarray(0, n);
}
function sumByNode(c, active, nodes, n) {
	const self = new Float64Array(n);
	const {value} = c.samples;

	for (let k = 0; k < active.length; k++)
		self[nodes[active[k]]] += value[active[k]];
	return self;
}

// Self and total by key of a node: a key counts once a stack, where it is outermost.
function sumByKey(c, self, keyOf, nKeys) {
	const {tree} = c;
	const total = accumulate(tree, self);
	const sums = {self: new Float64Array(nKeys), total: new Float64Array(nKeys)};
	const onPath = new Int32Array(nKeys);
	const path = [];

	for (let i = 1; i < tree.n; i++) {
		const key = keyOf[tree.symbol[i]];

		while (path.length >= tree.depth[i])
			onPath[path.pop()]--;
		path.push(key);
		onPath[key]++;
		sums.self[key] += self[i];
		if (onPath[key] === 1)
			sums.total[key] += total[i];
	}
	return sums;
}
const functionKeys = () => Int32Array.from(symbols.name, (_, i) => i);
const moduleNames = [];
let moduleKeys = null;

function keysOfModules() {
	const known = new Map();

	if (moduleKeys && moduleKeys.length === symbols.name.length)
		return moduleKeys;
	moduleNames.length = 0;
	moduleKeys = Int32Array.from(symbols.name, (_, i) => {
		const kind = symbols.kind[i];
		const name = kind === PROCESS || kind === GROUP ? '' : symbols.module[i] || '[no module]';

		if (!known.has(name)) {
			known.set(name, moduleNames.length);
			moduleNames.push(name);
		}
		return known.get(name);
	});
	return moduleKeys;
}
function sumByContainer(c, active) {
	const sums = new Map();

	for (const i of active) {
		const {owner} = c.threads[c.samples.thread[i]];

		sums.set(owner, (sums.get(owner) || 0) + c.samples.value[i]);
	}
	return sums;
}

// ---- Around one function ----

// selves: by node of each capture's tree. A recursive function is where it is outermost.
function buildCallees(symbol, selves) {
	const builder = new TreeBuilder(1024, symbol);
	const sums = captures.map(() => []);

	captures.forEach((c, number) => {
		const {tree} = c;
		const nodeOf = new Int32Array(tree.n).fill(NONE);
		const self = selves[number];

		for (let i = 1; i < tree.n; i++) {
			const outer = nodeOf[tree.parent[i]];

			if (outer !== NONE)
				nodeOf[i] = builder.descend(outer, tree.symbol[i], tree.place[i], number);
			else if (tree.symbol[i] === symbol)
				nodeOf[i] = 0;
			if (nodeOf[i] !== NONE)
				sums[number][nodeOf[i]] = (sums[number][nodeOf[i]] || 0) + self[i];
		}
	});
	return finishAround(builder, sums);
}
function buildCallers(symbol, selves) {
	const builder = new TreeBuilder(1024, symbol);
	const sums = captures.map(() => []);

	captures.forEach((c, number) => {
		const {tree} = c;
		const total = accumulate(tree, selves[number]);
		const inside = new Uint8Array(tree.n);

		for (let i = 1; i < tree.n; i++) {
			let node = 0;

			inside[i] = inside[tree.parent[i]] || tree.symbol[i] === symbol;
			if (tree.symbol[i] !== symbol || inside[tree.parent[i]] || !total[i])
				continue;
			for (let at = tree.parent[i]; at > 0; at = tree.parent[at])
				node = builder.descend(node, tree.symbol[at], tree.place[at], number);
			sums[number][node] = (sums[number][node] || 0) + total[i];
		}
	});
	return finishAround(builder, sums);
}
function finishAround(builder, sums) {
	const view = builder.finish({inverted: false});
	const selves = sums.map((sum) => Float64Array.from({length: view.n}, (_, i) => sum[i] || 0));

	return layOut(view, selves, 'heavy', 0);
}

// ---- Search ----

const escapeExpression = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// bad: what is wrong with an expression that is none, and is looked for as it stands.
function compileSearch(text) {
	try {
		return {expression: new RegExp(text, 'i'), bad: ''};
	} catch (e) {
		// "Invalid regular expression: /(/i: Unterminated group", and in other words elsewhere.
		const why = e.message.replace(/^.*\/[a-z]*: /, '').toLowerCase();

		return {expression: new RegExp(escapeExpression(text), 'i'), bad: `not a regular expression (${why}), searched as plain text`};
	}
}
// The samples with a match anywhere in the stack, of those in the node zoomed to.
function sumMatched(view, zoom, match) {
	const state = new Uint8Array(view.n); // 1: inside the zoom, 2: below a match
	let sum = 0;
	let frames = 0;
	let above = false;

	for (let at = view.parent[zoom]; at !== NONE; at = view.parent[at])
		above = above || (view.symbol[at] !== NONE && match[view.symbol[at]] === 1);
	for (let i = zoom; i < view.n; i++) {
		const outer = i === zoom ? (above ? 2 : 1) : state[view.parent[i]];

		if (!outer || !view.total[i])
			continue;
		const hit = view.symbol[i] !== NONE && match[view.symbol[i]] === 1;

		state[i] = outer === 2 || hit ? 2 : 1;
		frames += hit ? 1 : 0;
		if (state[i] === 2 && (outer === 1 || i === zoom))
			sum += view.total[i];
	}
	return {sum, frames};
}
