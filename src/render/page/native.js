// SPDX-License-Identifier: Apache-2.0
//
// Part 3: the captures' trees without the native frames of interpreters. As in the other outputs,
// the file whose functions call a runtime's frames in a stack is its interpreter, and so is one that
// surely does so in another stack: a runtime's innermost frame may be there before the native call
// that evaluates it. Compiled code next to a runtime's frames is the interpreter's as well.

const isRuntime = (symbol) => symbols.kind[symbol] === INTERPRETED && symbols.module[symbol] !== '[jit]';
const isCompiled = (symbol) => symbols.module[symbol] === '[jit]';
const isOfFile = (symbol) => [NATIVE, INLINED].includes(symbols.kind[symbol]) && !symbols.module[symbol].startsWith('[');
const hasRuntimes = captures.some((c) => c.tree.symbol.some((symbol) => symbol !== NONE && isRuntime(symbol)));

// The nodes from the leaf to below the root.
function pathOf(tree, leaf) {
	const path = [];

	for (let at = leaf; at > 0; at = tree.parent[at])
		path.push(at);
	return path;
}
function findInterpreters(stack, sure, found) {
	for (let i = 1; i < stack.length; i++) {
		if (isRuntime(stack[i - 1]) && isOfFile(stack[i]) && (!sure || (i > 1 && (isOfFile(stack[i - 2]) || isRuntime(stack[i - 2])))))
			found.add(symbols.module[stack[i]]);
	}
	return found;
}
function findEverywhere() {
	const found = new Set();

	for (const {tree, samples} of captures) {
		for (const leaf of new Set(samples.node))
			findInterpreters(pathOf(tree, leaf).map((at) => tree.symbol[at]), true, found);
	}
	return found;
}
// For each frame of compiled code, whether those next to it are a runtime's.
function findCompiled(stack) {
	const found = new Set();

	for (let i = 0, end; i < stack.length; i = end + 1) {
		for (end = i; end < stack.length && isCompiled(stack[end]);)
			end++;
		if ((i > 0 && isRuntime(stack[i - 1])) || (end < stack.length && isRuntime(stack[end]))) {
			for (let k = i; k < end; k++)
				found.add(k);
		}
	}
	return found;
}
// The nodes from below the root to the leaf that stay.
function withoutInterpreters(tree, leaf, everywhere) {
	const path = pathOf(tree, leaf);
	const stack = path.map((at) => tree.symbol[at]);

	if (stack.some(isRuntime)) {
		const here = findInterpreters(stack, false, new Set());
		const compiled = findCompiled(stack);
		const isHidden = (symbol) => isOfFile(symbol) && (here.has(symbols.module[symbol]) || everywhere.has(symbols.module[symbol]));

		return path.filter((_, i) => !compiled.has(i) && !isHidden(stack[i])).reverse();
	}
	return path.reverse();
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
function foldInterpreters({tree, samples}, everywhere) {
	const builder = new TreeBuilder(tree.n);
	const nodeOf = new Int32Array(tree.n).fill(NONE);

	for (const leaf of samples.node) {
		if (nodeOf[leaf] === NONE)
			nodeOf[leaf] = withoutInterpreters(tree, leaf, everywhere).reduce((node, at) => builder.descend(node, tree.symbol[at], tree.place[at]), 0);
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
	const everywhere = shown ? null : findEverywhere();

	for (const c of captures) {
		c.whole ||= {tree: c.tree, node: c.samples.node};
		if (!shown)
			c.folded ||= foldInterpreters(c, everywhere);
		c.tree = (shown ? c.whole : c.folded).tree;
		c.samples.node = (shown ? c.whole : c.folded).node;
	}
	return true;
}
