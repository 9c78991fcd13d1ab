// SPDX-License-Identifier: Apache-2.0
//
// Part 7: colours. One for each kind of frame, chosen so that they differ for the three kinds of
// colour blindness and in grey (tests/system/flamegraph-page.py has the figures), and a mark of its
// own at the edge, which distinguishes kinds where colour means a change. The module varies the
// lightness a little. Frames for a missing part of a stack are hatched.

const kinds = [
	{kind: NATIVE, name: 'native', light: '#e8a850', dark: '#a55a12'},
	{kind: INLINED, name: 'inlined', light: '#faf0b4', dark: '#636239', mark: 'left'},
	{kind: KERNEL, name: 'kernel', light: '#3c8ce4', dark: '#05316b', mark: 'solid'},
	{kind: JIT, name: 'JIT', light: '#8ee0d2', dark: '#034f37', mark: 'dotted'},
	{kind: INTERPRETED, name: 'interpreted', light: '#b78fbd', dark: '#713796', mark: 'dashed'},
	{kind: MARKER, name: 'stack cut here', light: '#d4d8df', dark: '#3d434e'},
	{kind: PROCESS, name: '', light: '#dfe3ea', dark: '#343b47'},
	{kind: WAIT, name: '', light: '#cdd5e3', dark: '#3a4558'},
	{kind: GROUP, name: '', light: '#e9ecf1', dark: '#2b313b'},
];
const darkPreferred = matchMedia('(prefers-color-scheme: dark)');
let theme = {};
let frameColours = [];
let hatching = null;

function isDark() {
	return state.theme ? state.theme === 'dark' : darkPreferred.matches;
}
function hashText(text) {
	let h = 2166136261;

	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return (h >>> 0) / 4294967296;
}
function shade(hex, factor) {
	const part = (at) => Math.max(0, Math.min(255, Math.round(parseInt(hex.slice(at, at + 2), 16) * factor)));

	return `rgb(${part(1)} ${part(3)} ${part(5)})`;
}
function kindColour(kind) {
	const entry = kinds.find((k) => k.kind === kind) || kinds[0];

	return isDark() ? entry.dark : entry.light;
}
function symbolColour(symbol) {
	const kind = symbol === NONE ? GROUP : symbols.kind[symbol];

	if (!frameColours[symbol + 1])
		frameColours[symbol + 1] = kind === GROUP || kind === PROCESS ? kindColour(kind)
			: shade(kindColour(kind), 0.98 + 0.04 * hashText(symbols.module[symbol]));
	return frameColours[symbol + 1];
}
// Wall time: what a thread does colours all frames of the stack. Who is blind to some colours can
// tell what ran, or wanted to, from all waits, and the waits from each other.
const byState = !comparing && captures[0].meta.event === 'wall';
const stateColours = {
	'on CPU': ['#f0a860', '#a55a12'], 'waiting for a CPU': ['#e07070', '#8b1b09'], lock: ['#db7fc6', '#864b65'], condition: ['#bda5e4', '#54418f'],
	sleep: ['#d4e2dd', '#3e4e52'], poll: ['#b5c8f1', '#2e3d6f'], network: ['#7da1fb', '#21648a'], pipe: ['#87c9d3', '#1b546f'],
	disk: ['#91c993', '#1e4f32'], 'page fault': ['#bef366', '#43562c'], child: ['#dad29a', '#6f5d35'], signal: ['#cfc7b4', '#5a5044'],
	'file lock': ['#d6a9b1', '#81383f'], 'kernel lock': ['#c77fa0', '#663b43'], freezer: ['#c4d5e8', '#2e4d58'],
	wait: ['#a9adb8', '#5b6170'], idle: ['#e3e4ef', '#323e45'], 'not seen': ['#e9ecf1', '#2b313b'],
};
const stateOf = (symbol) => (symbols.kind[symbol] === WAIT || symbols.kind[symbol] === MARKER
	? /^\[(?:wait: )?([^\]]+)\]$/.exec(symbols.name[symbol])?.[1] : undefined);

function stateColour(view, node) {
	if (!view.states) {
		view.states = [undefined];
		for (let i = 1; i < view.n; i++)
			view.states.push(view.states[view.parent[i]] || stateOf(view.symbol[i]));
	}
	const pair = stateColours[view.states[node]];

	return pair ? shade(pair[isDark() ? 1 : 0], 0.97 + 0.06 * hashText(symbols.name[view.symbol[node]])) : symbolColour(view.symbol[node]);
}
// Less is blue, more is orange; the strength is the change relative to the larger share.
function changeColour(before, after) {
	const change = (after - before) / Math.max(before, after, 1e-9);
	const strength = Math.min(1, Math.abs(change));
	const end = change > 0 ? (isDark() ? [190, 84, 0] : [236, 112, 20]) : isDark() ? [28, 94, 178] : [72, 138, 218];
	const middle = isDark() ? [52, 57, 66] : [226, 229, 234];

	return `rgb(${middle.map((m, i) => Math.round(m + (end[i] - m) * strength)).join(' ')})`;
}
function makeHatching() {
	const tile = document.createElement('canvas');
	const pen = tile.getContext('2d');

	tile.width = tile.height = 8;
	pen.strokeStyle = isDark() ? '#8b95a7' : '#7d8797';
	pen.lineWidth = 1.4;
	for (let at = -8; at <= 8; at += 8) {
		pen.moveTo(at, 8);
		pen.lineTo(at + 8, 0);
	}
	pen.stroke();
	return pen.createPattern(tile, 'repeat');
}
// The mark of a kind at the lower or the left edge of its frame.
const markOf = [];
const dashes = {solid: [], dotted: [2, 3], dashed: [7, 4], left: []};

for (const {kind, mark} of kinds)
	markOf[kind] = mark;
function drawMark(pen, kind, left, top, width, height) {
	const mark = markOf[kind];
	const bottom = top + height - 1;

	if (!mark || width < 5)
		return;
	pen.strokeStyle = theme.mark;
	pen.lineWidth = 2;
	pen.setLineDash(dashes[mark]);
	pen.beginPath();
	pen.moveTo(left + (mark === 'left' ? 1 : 0), mark === 'left' ? top : bottom);
	pen.lineTo(left + (mark === 'left' ? 1 : width), top + height - (mark === 'left' ? 0 : 1));
	pen.stroke();
	pen.setLineDash([]);
}
function readTheme() {
	document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
	const style = getComputedStyle(document.documentElement);
	const get = (name) => style.getPropertyValue(name).trim();

	frameColours = [];
	hatching = makeHatching();
	theme = {panel: get('--panel'), text: get('--text'), muted: get('--muted'), line: get('--line'), accent: get('--accent'),
		 mono: get('--mono'), match: isDark() ? '#d13cb4' : '#ff7ae0', mark: isDark() ? '#ffffff8c' : '#1b202980', rest: isDark() ? '#ffffff14' : '#00000012'};
}
// From empty to busy the lightness only grows or only falls.
function heatColour(share) {
	const from = isDark() ? [30, 36, 46] : [238, 241, 246];
	const to = isDark() ? [255, 190, 92] : [150, 34, 8];
	const part = Math.sqrt(share);

	return `rgb(${from.map((f, i) => Math.round(f + (to[i] - f) * part)).join(' ')})`;
}
