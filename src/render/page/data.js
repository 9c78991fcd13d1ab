// SPDX-License-Identifier: Apache-2.0
//
// The flame graph page, part 1: the page's data as typed arrays. There is one capture, of one
// of its events, or two to compare (the newer first), with one table of symbols for both.
// Names are untrusted: they are only drawn or set as text, never as markup.
'use strict';

const NONE = -1;
// The kinds 0 to 6 are those of the data. The page adds groups, and counts as interpreted also names
// that perf maps give to interpreted code.
const [NATIVE, KERNEL, JIT, INLINED, MARKER, PROCESS, INTERPRETED, WAIT, GROUP] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

const sumOf = (column) => column.reduce((sum, n) => sum + n, 0);

// Numbers in a column: LEB128 in base64; with differences each is zigzag and relative to the last.
function decodeColumn(text, n, differences) {
	const bytes = atob(text);
	const column = new Float64Array(n);
	let last = 0;

	for (let i = 0, at = 0; i < n; i++) {
		let value = 0;
		let byte = 128;

		for (let unit = 1; byte & 128; unit *= 128) {
			byte = bytes.charCodeAt(at++);
			value += (byte & 127) * unit;
		}
		if (differences) {
			last += value % 2 ? -(value + 1) / 2 : value / 2;
			value = last;
		}
		column[i] = value;
	}
	return column;
}

// ---- Symbols of all captures ----

const symbols = {name: [], module: [], kind: [], file: [], line: []};
const symbolIndex = new Map();

function symbolOf(name, module, kind, file, line) {
	const key = `${kind}\n${module}\n${name}`;
	let symbol = symbolIndex.get(key);

	if (symbol === undefined) {
		symbol = symbols.name.length;
		symbolIndex.set(key, symbol);
		symbols.name.push(name);
		symbols.module.push(module);
		symbols.kind.push(kind);
		symbols.file.push(file || '');
		symbols.line.push(line || 0);
	}
	return symbol;
}
// Names of interpreted code in perf maps of CPython, V8 and the JVM.
const interpretedName = /^(py::|(JS|Function|LazyCompile|Script|Eval):~|Interpreter$)/;

function decodeSymbols(raw) {
	const {n} = raw.symbols;
	const name = decodeColumn(raw.symbols.name, n, true);
	const module = decodeColumn(raw.symbols.module, n);
	const kind = decodeColumn(raw.symbols.kind, n);
	const file = decodeColumn(raw.symbols.file, n);
	const line = decodeColumn(raw.symbols.line, n);
	const map = new Int32Array(n);

	for (let i = 0; i < n; i++) {
		const text = raw.strings[name[i]];
		const own = kind[i] === JIT && interpretedName.test(text) ? INTERPRETED : kind[i];

		map[i] = symbolOf(text, raw.strings[module[i]], own, raw.strings[file[i]], line[i]);
	}
	return map;
}

// ---- Captures ----

function decodePlaces(raw, symbolMap) {
	const {n, symbol, line, high, low} = raw.places;

	return {symbol: Int32Array.from(decodeColumn(symbol, n, true), (s) => symbolMap[s]), line: decodeColumn(line, n),
		high: decodeColumn(high, n, true), low: decodeColumn(low, n, true)};
}
// The call tree in preorder: node 0 is the root, those below it processes, below them functions.
function decodeTree(raw, places) {
	const n = raw.nodes.n + 1;
	const place = decodeColumn(raw.nodes.place, n - 1);
	const up = decodeColumn(raw.nodes.up, n - 1);
	const tree = {n, place: new Int32Array(n).fill(NONE), symbol: new Int32Array(n).fill(NONE),
		      parent: new Int32Array(n).fill(NONE), depth: new Int32Array(n)};
	const path = [0];

	for (let i = 1; i < n; i++) {
		const depth = tree.depth[i - 1] + 1 - up[i - 1];

		tree.place[i] = place[i - 1];
		tree.symbol[i] = places.symbol[place[i - 1]];
		tree.depth[i] = depth;
		tree.parent[i] = path[depth - 1];
		path[depth] = i;
	}
	return tree;
}
function decodeSamples(raw) {
	const {n, node, time, thread, cpu} = raw.samples;
	const value = decodeColumn(raw.samples.value, n);
	const {weighted, spread} = raw.meta;
	// The samples in a value, and the sum of their squares: if each counts 1, both are the value.
	const count = weighted ? decodeColumn(raw.samples.count, n) : value;

	return {n, node: Int32Array.from(decodeColumn(node, n)), time: decodeColumn(time, n, true),
		thread: Int32Array.from(decodeColumn(thread, n)), cpu: Int32Array.from(decodeColumn(cpu, n)),
		value, count, squares: weighted ? value.map((v, i) => (v * v) / count[i] + (count[i] - 1) * spread) : value};
}
function decodeCapture(raw) {
	const places = decodePlaces(raw, decodeSymbols(raw));
	const samples = decodeSamples(raw);
	const threads = raw.threads.map(([tid, pid, name, process, owner, labels]) => ({
		tid, pid, name, process: symbolOf(process, owner, PROCESS), owner: owner || 'no container or unit', labels: labels || [],
	}));
	let first = Infinity;
	let last = -Infinity;

	for (let i = 0; i < samples.n; i++) {
		first = Math.min(first, samples.time[i]);
		last = Math.max(last, samples.time[i]);
	}
	return {meta: raw.meta, counters: raw.counters, total: raw.total, cut: raw.cut, places, locks: raw.locks,
		tree: decodeTree(raw, places), samples, threads,
		// Without times of their own, all samples have the same time.
		timed: last > first, first, last,
		mean: sumOf(samples.value) / sumOf(samples.count)};
}
function isUnnamed(symbol) {
	return ![MARKER, WAIT].includes(symbols.kind[symbol]) && symbols.name[symbol].startsWith('[');
}

const inFile = JSON.parse(document.getElementById('data').textContent);
const comparing = inFile.some((raw) => raw.meta.before);
// Otherwise each is another event, and one is shown. The URL holds the view, so choosing another
// event loads the page again.
const events = comparing ? [] : inFile.map((raw) => raw.meta.event);
const askedEvent = Math.max(0, inFile.findIndex((raw) => raw.meta.asked));
function eventIn(fragment) {
	const event = events.indexOf(new URLSearchParams(fragment.slice(1)).get('event'));

	return event < 0 ? askedEvent : event;
}
const shownEvent = eventIn(location.hash);
const captures = (comparing ? inFile : [inFile[shownEvent]]).map(decodeCapture);
// Is the number of samples known in all?
const counted = captures.every((c) => c.meta.counted);
const nodesInFile = captures.reduce((sum, c) => sum + c.tree.n - 1, 0);
