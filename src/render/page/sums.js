// SPDX-License-Identifier: Apache-2.0
//
// Part 4: sums over the selected samples: by node of the captures' trees, by function, module and
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
// A label is "key=value"; a thread has any number of them.
function filterTest(c, filter) {
	const key = filterKeys(c, filter.kind);

	if (key)
		return (i) => key(i) === filter.key;
	const matches = labelTest(filter.key);
	return (i) => c.threads[c.samples.thread[i]].labels.some(matches);
}
// Services are chosen by a glob, as --service chooses them.
function labelTest(label) {
	if (!label.startsWith('service.name=') || !/[*?[]/.test(label))
		return (l) => l === label;
	const glob = label.replace(/\[!?[^\]]+\]|[^]/g, (c) => {
		if (c.length > 1)
			return c.replace('[!', '[^').replace(/\\/g, '\\\\');
		return c === '*' ? '.*' : c === '?' ? '.' : c.replace(/[\\^$.|+()[\]{}]/, '\\$&');
	});
	try {
		const pattern = new RegExp(`^${glob}$`, 's');
		return (l) => pattern.test(l);
	} catch { // a range that goes backwards
		return () => false;
	}
}
// What is typed for a label: an id of a trace or a span, a label, or the name of a service.
function labelOf(text) {
	if (/^[0-9a-f]{32}$/i.test(text))
		return `trace_id=${text.toLowerCase()}`;
	if (/^[0-9a-f]{16}$/i.test(text))
		return `span_id=${text.toLowerCase()}`;
	return text.includes('=') ? text : `service.name=${text}`;
}
function selectSamples(c, filter, range) {
	const chosen = new Int32Array(c.samples.n);
	const passes = filter ? filterTest(c, filter) : null;
	const source = filter && (filter.kind === 'cpu' ? c.samples.cpu : c.samples.thread);
	const known = new Map();
	let n = 0;

	for (let i = 0; i < c.samples.n; i++) {
		if (range && (c.samples.time[i] < range[0] || c.samples.time[i] >= range[1]))
			continue;
		if (filter) {
			if (!known.has(source[i]))
				known.set(source[i], passes(i));
			if (!known.get(source[i]))
				continue;
		}
		chosen[n++] = i;
	}
	return chosen.subarray(0, n);
}
function sumByNode(active, nodes, n, value) {
	const self = new Float64Array(n);

	for (let k = 0; k < active.length; k++)
		self[nodes[active[k]]] += value[active[k]];
	return self;
}
// The values of the selected samples by node, and their squares. Equal ones are one column.
function weighByNode(c, active, nodes, n) {
	const sum = sumByNode(active, nodes, n, c.samples.value);

	return {sum, squares: c.meta.weighted ? sumByNode(active, nodes, n, c.samples.squares) : sum};
}

// Self and total by key of a node: a key counts once in a stack, where it is outermost.
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
// The same as weights.
function weighByKey(c, weights, keyOf, nKeys) {
	const sum = sumByKey(c, weights.sum, keyOf, nKeys);
	const squares = weights.squares === weights.sum ? sum : sumByKey(c, weights.squares, keyOf, nKeys);

	return {self: {sum: sum.self, squares: squares.self}, total: {sum: sum.total, squares: squares.total}};
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
// Like weighByKey(), with the names of the keys.
function weighContainers(active) {
	const keys = new Map();
	const keyOf = captures.map((c) => c.threads.map(({owner}) => {
		if (!keys.has(owner))
			keys.set(owner, keys.size);
		return keys.get(owner);
	}));
	const sums = captures.map((c, i) => {
		const weights = weighByNode(c, active[i], c.samples.thread.map((thread) => keyOf[i][thread]), keys.size);

		return {self: weights, total: weights};
	});

	return {names: [...keys.keys()], sums};
}

// ---- Around one function ----

// weights: by node of each capture's tree. A recursive function counts where it is outermost.
function buildCallees(symbol, weights) {
	const builder = new TreeBuilder(1024, symbol);
	const nodes = captures.map((c, number) => {
		const {tree} = c;
		const nodeOf = new Int32Array(tree.n).fill(NONE);

		for (let i = 1; i < tree.n; i++) {
			const outer = nodeOf[tree.parent[i]];

			if (outer !== NONE)
				nodeOf[i] = builder.descend(outer, tree.symbol[i], tree.place[i], number);
			else if (tree.symbol[i] === symbol)
				nodeOf[i] = 0;
		}
		return nodeOf;
	});

	return finishAround(builder, nodes, weights);
}
function buildCallers(symbol, weights) {
	const builder = new TreeBuilder(1024, symbol);
	const totals = captures.map(({tree}, i) => accumulateWeights(tree, weights[i]));
	const nodes = captures.map((c, number) => {
		const {tree} = c;
		const nodeOf = new Int32Array(tree.n).fill(NONE);
		const inside = new Uint8Array(tree.n);

		for (let i = 1; i < tree.n; i++) {
			let node = 0;

			inside[i] = inside[tree.parent[i]] || tree.symbol[i] === symbol;
			if (tree.symbol[i] !== symbol || inside[tree.parent[i]] || !totals[number].sum[i])
				continue;
			for (let at = tree.parent[i]; at > 0; at = tree.parent[at])
				node = builder.descend(node, tree.symbol[at], tree.place[at], number);
			nodeOf[i] = node;
		}
		return nodeOf;
	});

	return finishAround(builder, nodes, totals);
}
// nodes: the node of the new tree by node of each capture's tree; NONE: not in it.
function finishAround(builder, nodes, weights) {
	const view = builder.finish({inverted: false});
	const gather = (nodeOf, column) => {
		const sum = new Float64Array(view.n);

		nodeOf.forEach((node, i) => {
			if (node !== NONE)
				sum[node] += column[i];
		});
		return sum;
	};
	const selves = weights.map(({sum, squares}, i) => {
		const gathered = gather(nodes[i], sum);

		return {sum: gathered, squares: squares === sum ? gathered : gather(nodes[i], squares)};
	});

	return layOut(view, selves, 'heavy', 0);
}

// ---- Search ----

const escapeExpression = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

// bad: why the text is not an expression; then it is searched as plain text.
function compileSearch(text) {
	try {
		return {expression: new RegExp(text, 'i'), bad: ''};
	} catch (e) {
		// "Invalid regular expression: /(/i: Unterminated group"; other browsers word it differently.
		const why = e.message.replace(/^.*\/[a-z]*: /, '').toLowerCase();

		return {expression: new RegExp(escapeExpression(text), 'i'), bad: `not a regular expression (${why}), searched as plain text`};
	}
}
// The samples with a match anywhere in the stack, among those in the zoomed node.
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
