// SPDX-License-Identifier: Apache-2.0
//
// Part 3: the captures' trees without the native frames of interpreters. As in the other outputs,
// the file whose functions call a runtime's frames in a stack is its interpreter.

const isRuntime = (symbol) => symbols.kind[symbol] === INTERPRETED && symbols.module[symbol] !== '[jit]';
const isOfFile = (symbol) => [NATIVE, INLINED].includes(symbols.kind[symbol]) && !symbols.module[symbol].startsWith('[');
const hasRuntimes = captures.some((c) => c.tree.symbol.some((symbol) => symbol !== NONE && isRuntime(symbol)));

// The nodes from below the root to the leaf that stay.
function withoutInterpreters(tree, leaf) {
	const path = [];
	const interpreters = new Set();

	for (let at = leaf; at > 0; at = tree.parent[at])
		path.push(at);
	for (let i = 1; i < path.length; i++) {
		if (isRuntime(tree.symbol[path[i - 1]]) && isOfFile(tree.symbol[path[i]]))
			interpreters.add(symbols.module[tree.symbol[path[i]]]);
	}
	return path.reverse().filter((at) => !(isOfFile(tree.symbol[at]) && interpreters.has(symbols.module[tree.symbol[at]])));
}
// The numbers of a tree's nodes in preorder, which sums by name need.
function numberNodes(tree) {
	const order = new Int32Array(tree.n);
	const stack = [0];
	let n = 0;

	listChildren(tree);
	while (stack.length) {
		const node = stack.pop();

		order[node] = n++;
		for (let j = tree.childStart[node]; j < tree.childStart[node + 1]; j++)
			stack.push(tree.children[j]);
	}
	return order;
}
function inPreorder({n, symbol, parent, depth, place}, order) {
	const tree = {n, symbol: new Int32Array(n), parent: new Int32Array(n), depth: new Int32Array(n), place: new Int32Array(n)};

	for (let i = 0; i < n; i++) {
		tree.symbol[order[i]] = symbol[i];
		tree.parent[order[i]] = i ? order[parent[i]] : NONE;
		tree.depth[order[i]] = depth[i];
		tree.place[order[i]] = place[i];
	}
	return tree;
}
// {tree, node}: as those of the capture and its samples.
function foldInterpreters({tree, samples}) {
	const builder = new TreeBuilder(tree.n);
	const nodeOf = new Int32Array(tree.n).fill(NONE);

	for (const leaf of samples.node) {
		if (nodeOf[leaf] === NONE)
			nodeOf[leaf] = withoutInterpreters(tree, leaf).reduce((node, at) => builder.descend(node, tree.symbol[at], tree.place[at]), 0);
	}
	const folded = builder.finish({});
	const order = numberNodes(folded);

	return {tree: inPreorder(folded, order), node: samples.node.map((leaf) => order[nodeOf[leaf]])};
}
// False: they are shown like that already.
function showNativeFrames(shown) {
	const [first] = captures;

	if (first.whole ? shown === (first.tree === first.whole.tree) : shown)
		return false;
	for (const c of captures) {
		c.whole ||= {tree: c.tree, node: c.samples.node};
		if (!shown)
			c.folded ||= foldInterpreters(c);
		c.tree = (shown ? c.whole : c.folded).tree;
		c.samples.node = (shown ? c.whole : c.folded).node;
	}
	return true;
}
