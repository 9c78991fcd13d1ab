// SPDX-License-Identifier: Apache-2.0
//
// Part 2: views. A view is a tree made from the captures' trees: split into groups, inverted, or in
// the order of time. It knows the node of each sample, so that another selection of samples only
// needs new sums and a new layout, not a new tree. A parent's number is smaller than its children's.

// Pairs of numbers to a number: open addressing, several times faster than a Map with made-up keys.
class PairIndex {
	constructor(capacity) {
		this.resize(1 << Math.ceil(Math.log2(Math.max(64, capacity * 2))));
	}
	resize(size) {
		this.mask = size - 1;
		this.used = 0;
		this.a = new Int32Array(size);
		this.b = new Int32Array(size);
		this.value = new Int32Array(size).fill(NONE);
	}
	slot(a, b) {
		let at = Math.imul(a ^ Math.imul(b, 0x9e3779b1), 0x85ebca6b);

		at = (at ^ (at >>> 15)) & this.mask;
		while (this.value[at] !== NONE && (this.a[at] !== a || this.b[at] !== b))
			at = (at + 1) & this.mask;
		return at;
	}
	get(a, b) {
		return this.value[this.slot(a, b)];
	}
	set(a, b, value) {
		if (this.used * 2 > this.mask)
			this.grow();
		const at = this.slot(a, b);

		this.used++;
		this.a[at] = a;
		this.b[at] = b;
		this.value[at] = value;
	}
	grow() {
		const old = {a: this.a, b: this.b, value: this.value};

		this.resize((this.mask + 1) * 2);
		for (let i = 0; i < old.value.length; i++) {
			if (old.value[i] !== NONE)
				this.set(old.a[i], old.b[i], old.value[i]);
		}
	}
}

class TreeBuilder {
	constructor(capacity, rootSymbol = NONE) {
		this.children = new PairIndex(capacity);
		this.symbol = [rootSymbol];
		this.parent = [NONE];
		this.depth = [0];
		this.place = [NONE];
		this.capture = [0]; // the capture of its place
	}
	append(parent, symbol, place, capture) {
		this.parent.push(parent);
		this.depth.push(this.depth[parent] + 1);
		this.place.push(place);
		this.capture.push(capture);
		return this.symbol.push(symbol) - 1;
	}
	descend(parent, symbol, place = NONE, capture = 0) {
		let node = this.children.get(parent, symbol);

		if (node === NONE) {
			node = this.append(parent, symbol, place, capture);
			this.children.set(parent, symbol, node);
		}
		return node;
	}
	finish(extra) {
		return {n: this.symbol.length, symbol: Int32Array.from(this.symbol), parent: Int32Array.from(this.parent),
			depth: Int32Array.from(this.depth), place: Int32Array.from(this.place), capture: this.capture, ...extra};
	}
}

// ---- Groups ----

const splits = {
	none: () => [],
	process: (c, i) => [c.threads[c.samples.thread[i]].process],
	thread: (c, i) => {
		const t = c.threads[c.samples.thread[i]];
		// Another run has other numbers, so names are compared.
		const name = comparing ? t.name : `${t.name || 'thread'} (${t.tid})`;

		return [t.process, symbolOf(name, comparing ? '' : `pid ${t.pid}`, GROUP)];
	},
	container: (c, i) => {
		const t = c.threads[c.samples.thread[i]];

		return [symbolOf(t.owner, '', GROUP), t.process];
	},
	cpu: (c, i) => [symbolOf(`CPU ${c.samples.cpu[i]}`, '', GROUP)],
};

// The node of each sample's group. Groups depend on the thread, or on the CPU alone.
function groupSamples(builder, c, split) {
	const key = split === 'cpu' ? c.samples.cpu : c.samples.thread;
	const known = new Map();

	return key.map((k, i) => {
		if (!known.has(k))
			known.set(k, splits[split](c, i).reduce((node, symbol) => builder.descend(node, symbol), 0));
		return known.get(k);
	});
}

// ---- Trees ----

function placeDownward(builder, tree, number) {
	const memo = new PairIndex(tree.n);
	const path = [];

	return (group, leaf) => {
		let at = leaf;
		let node = NONE;

		path.length = 0;
		while (tree.depth[at] > 1 && (node = memo.get(group, at)) === NONE) {
			path.push(at);
			at = tree.parent[at];
		}
		if (tree.depth[at] <= 1)
			node = group;
		while (path.length) {
			at = path.pop();
			node = builder.descend(node, tree.symbol[at], tree.place[at], number);
			memo.set(group, at, node);
		}
		return node;
	};
}
function placeInverted(builder, tree, number) {
	const memo = new PairIndex(tree.n);

	return (group, leaf) => {
		let node = memo.get(group, leaf);

		if (node !== NONE)
			return node;
		node = group;
		for (let at = leaf; tree.depth[at] > 1; at = tree.parent[at])
			node = builder.descend(node, tree.symbol[at], tree.place[at], number);
		memo.set(group, leaf, node);
		return node;
	};
}
function buildTree(split, inverted) {
	// This is the tree of the file.
	if (split === 'process' && !inverted && !comparing) {
		const {n, symbol, parent, depth, place} = captures[0].tree;

		return {n, symbol, parent, depth, place, capture: null, sampleNodes: [captures[0].samples.node], inverted};
	}
	const builder = new TreeBuilder(nodesInFile);
	const sampleNodes = captures.map((c, number) => {
		const groups = groupSamples(builder, c, split);
		const place = (inverted ? placeInverted : placeDownward)(builder, c.tree, number);

		return c.samples.node.map((leaf, i) => place(groups[i], leaf));
	});

	return builder.finish({sampleNodes, inverted});
}

// Time from left to right: only neighbours share the common part of their stacks.
function buildTimeline(split, active) {
	const c = captures[0];
	const builder = new TreeBuilder(active.length * 8);
	const groups = groupSamples(builder, c, split);
	const order = Array.from(active).sort((a, b) => groups[a] - groups[b] || c.samples.time[a] - c.samples.time[b]);
	const sampleNode = new Int32Array(c.samples.n);
	const {tree} = c;
	let last = [];
	let group = NONE;

	for (const i of order) {
		const path = [];
		let shared = 0;

		for (let at = c.samples.node[i]; tree.depth[at] > 1; at = tree.parent[at])
			path.push(at);
		path.reverse();
		if (groups[i] !== group)
			last = [];
		group = groups[i];
		while (shared < path.length && shared < last.length && last[shared].at === path[shared])
			shared++;
		last.length = shared;
		for (const at of path.slice(shared)) {
			const parent = last.length ? last[last.length - 1].node : group;

			last.push({at, node: builder.append(parent, tree.symbol[at], tree.place[at], 0)});
		}
		sampleNode[i] = last.length ? last[last.length - 1].node : group;
	}
	return builder.finish({sampleNodes: [sampleNode], inverted: false, timeline: true});
}

// ---- Sums and layout ----

function accumulate(view, self) {
	const total = Float64Array.from(self);

	for (let i = view.n - 1; i > 0; i--)
		total[view.parent[i]] += total[i];
	return total;
}
function accumulateWeights(view, {sum, squares}) {
	const total = accumulate(view, sum);

	return {sum: total, squares: squares === sum ? total : accumulate(view, squares)};
}
// Children by parent, once for a tree: childStart[p] to childStart[p + 1] of children.
function listChildren(view) {
	const start = new Int32Array(view.n + 2);

	for (let i = 1; i < view.n; i++)
		start[view.parent[i] + 2]++;
	for (let i = 2; i < start.length; i++)
		start[i] += start[i - 1];
	view.children = new Int32Array(Math.max(0, view.n - 1));
	for (let i = 1; i < view.n; i++)
		view.children[start[view.parent[i] + 1]++] = i;
	view.childStart = start;
}
function sortSlice(list, from, to, compare) {
	if (to - from > 16) {
		list.subarray(from, to).sort(compare);
		return;
	}
	for (let i = from + 1; i < to; i++) {
		const item = list[i];
		let j = i;

		for (; j > from && compare(list[j - 1], item) > 0; j--)
			list[j] = list[j - 1];
		list[j] = item;
	}
}
let symbolRank = new Int32Array(0);

function rankSymbols() {
	if (symbolRank.length === symbols.name.length)
		return;
	const order = Array.from(symbols.name, (_, i) => i);

	order.sort((a, b) => (symbols.name[a] < symbols.name[b] ? -1 : symbols.name[a] > symbols.name[b] ? 1 : a - b));
	symbolRank = new Int32Array(order.length);
	order.forEach((symbol, rank) => {
		symbolRank[symbol] = rank;
	});
}
// weights: by node of each capture. width: which of them gives the frames their width.
function layOut(view, weights, order, width) {
	const {n, symbol} = view;

	view.selfWeights = weights;
	view.weights = weights.map((self) => accumulateWeights(view, self));
	view.totals = view.weights.map(({sum}) => sum);
	view.self = weights[width].sum;
	view.total = view.totals[width];
	view.noise = findNoise(view.weights, view.weights.map((column) => weightAt(column, 0)));
	view.x = new Float64Array(n);
	view.height = new Int32Array(n); // levels below that are not empty
	if (!view.children)
		listChildren(view);
	if (order === 'name')
		rankSymbols();
	const {total, x, children, childStart, parent, height} = view;
	const byName = (a, b) => symbolRank[symbol[a]] - symbolRank[symbol[b]];
	const byTotal = (a, b) => total[b] - total[a] || a - b;
	const compare = view.timeline ? null : order === 'name' ? byName : byTotal;

	for (let i = n - 1; i > 0; i--) {
		if (total[i])
			height[parent[i]] = Math.max(height[parent[i]], height[i] + 1);
	}
	for (let i = 0; i < n; i++) {
		const to = childStart[i + 1];
		let at = x[i];

		if (!total[i])
			continue;
		if (compare && to - childStart[i] > 1)
			sortSlice(children, childStart[i], to, compare);
		for (let j = childStart[i]; j < to; j++) {
			x[children[j]] = at;
			at += total[children[j]];
		}
	}
	return view;
}
function childBySymbol(view, node, symbol) {
	for (let j = view.childStart[node]; j < view.childStart[node + 1]; j++) {
		if (view.symbol[view.children[j]] === symbol && view.total[view.children[j]])
			return view.children[j];
	}
	return NONE;
}
// The live neighbour of a node among its siblings; direction is -1 or 1.
function sibling(view, node, direction) {
	const parent = view.parent[node];

	if (parent === NONE)
		return NONE;
	const from = view.childStart[parent];
	const to = view.childStart[parent + 1];

	for (let j = view.children.indexOf(node, from) + direction; j >= from && j < to; j += direction) {
		if (view.total[view.children[j]])
			return view.children[j];
	}
	return NONE;
}
function firstChild(view, node) {
	let best = NONE;

	for (let j = view.childStart[node]; j < view.childStart[node + 1]; j++) {
		if (best === NONE || view.total[view.children[j]] > view.total[best])
			best = view.children[j];
	}
	return best !== NONE && view.total[best] ? best : NONE;
}
