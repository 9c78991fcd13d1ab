// SPDX-License-Identifier: Apache-2.0
// Known chains of calls of JavaScript, for tests/system/node.py: chain_main, chain_turn, some callers, and a leaf, of
// which most call a native function that no other one calls. "calls.js THREADS [closures]"; closures: with functions
// that are made for one call each, while the collector moves and frees them.
'use strict';
const { Worker, isMainThread, workerData } = require('worker_threads');
const crypto = require('crypto');

const text = 'a lion, a unicorn and 12 of the king\'s men '.repeat(60);
const accents = '\u00e9\u00e8\u0151 and so on '.repeat(80);
const tree = Array.from({ length: 60 }, (_, i) => ({ i, name: 'n' + i, list: [i, i + 1] }));
const big = (1n << 6000n) + 12345n;
let kept = [];
let sum = 0;

function chain_json() {
	sum += JSON.stringify(tree).length;
}
function chain_hash() {
	sum += crypto.createHash('sha256').update(text).digest()[0];
}
function chain_normalize() {
	sum += accents.normalize('NFD').length;
}
function chain_big() {
	sum += Number((big * big) & 255n);
}
function chain_regexp() {
	sum += text.split(/[aeiou]+(?=\s|,)/).length;
}
function chain_loop() {
	for (let i = 0; i < 20000; i++)
		sum = (sum * 31 + i) % 1000003;
}
const leaves = [chain_json, chain_hash, chain_normalize, chain_big, chain_regexp, chain_loop];

function chain_inner(leaf) {
	leaf();
	sum++;
}
function chain_middle(leaf) {
	chain_inner(leaf);
	sum++;
}
function chain_outer(leaf) {
	chain_middle(leaf);
	sum++;
}
function chain_deep(n, leaf) {
	if (n > 0)
		chain_deep(n - 1, leaf);
	else
		leaf();
	sum++;
}
function chain_called(leaf) {
	leaf();
	sum++;
}
function chain_callback(leaf) {
	[leaf].forEach(chain_called);
	sum++;
}
function chain_key(a, b) {
	chain_key.leaf();
	return a - b;
}
function chain_by_key(leaf) {
	chain_key.leaf = leaf;
	[2, 1].sort(chain_key);
	sum++;
}
function* chain_generate(leaf) {
	yield 1;
	leaf();
	yield 2;
}
function chain_consume(leaf) {
	for (const one of chain_generate(leaf))
		sum += one;
}
class Square {
	chain_area(leaf) {
		leaf();
		sum++;
	}
}
class Circle {
	chain_area(leaf) {
		leaf();
		sum += 2;
	}
}
const shapes = [new Square(), new Circle()];
function chain_shape(leaf) {
	for (const shape of shapes)
		shape.chain_area(leaf);
}
function chain_raise(leaf) {
	leaf();
	throw new Error('no');
}
function chain_catch(leaf) {
	try {
		chain_raise(leaf);
	} catch (e) {
		sum += e.stack.length;
	}
}
const chain_evaluated = eval('(function chain_evaluated(leaf) {\n\tleaf();\n\tsum++;\n})');
const chain_generated = new Function('leaf', 'leaf();\nreturn 1;');
function chain_made(leaf) {
	chain_evaluated(leaf);
	sum += chain_generated(leaf);
}
function chain_closes(leaf) {
	const chain_closure = function chain_closure(more) {
		kept.push([chain_closure, more]);
		leaf();
		sum += kept.length;
	};
	if (kept.length > 2000)
		kept = [];
	chain_closure([leaf, {}]);
}
async function chain_awaits(leaf) {
	await null;
	leaf();
	sum++;
}
// (module (import "e" "f" (func)) (func (export "g") call 0))
const wasm = new WebAssembly.Module(new Uint8Array([
	0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 101, 1, 102, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 103, 0, 1, 10,
	6, 1, 4, 0, 16, 0, 11]));
const machine = new WebAssembly.Instance(wasm, { e: { f: chain_imported } });
function chain_imported() {
	chain_imported.leaf();
	sum++;
}
function chain_machine(leaf) {
	chain_imported.leaf = leaf;
	machine.exports.g();
	sum++;
}

const begun = process.cpuUsage();
const life = Number(process.argv[4] || Infinity); // microseconds on a CPU, roughly
const closures = process.argv[3] === 'closures' || (workerData && workerData.closures);
const callers = closures ? [chain_closes]
	: [chain_outer, chain_callback, chain_by_key, chain_consume, chain_shape, chain_catch, chain_made, chain_closes,
		chain_machine];

function chain_turn(leaf) {
	leaf();
	chain_deep(20, leaf);
	for (const caller of callers)
		caller(leaf);
}
function chain_main() {
	const end = Date.now() + 20;
	while (Date.now() < end) {
		for (const leaf of leaves)
			chain_turn(leaf);
	}
	for (const leaf of leaves)
		chain_awaits(leaf);
	if (process.cpuUsage(begun).user < life)
		setImmediate(chain_main);
}

if (isMainThread) {
	for (let i = 1; i < Number(process.argv[2] || 1); i++)
		new Worker(__filename, { workerData: { closures } });
}
chain_main();
