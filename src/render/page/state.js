// SPDX-License-Identifier: Apache-2.0
//
// Part 6: the state of the view, also as the fragment of the URL, so that a link can share a view.

const tabs = ['graph', 'functions', 'sandwich', 'modules', 'containers'].concat(comparing ? ['changes'] : captures[0].locks ? ['locks'] : []);
const choices = {
	event: events,
	tab: tabs,
	split: Object.keys(splits),
	order: comparing ? ['name', 'heavy'] : ['name', 'heavy', 'time'],
	shape: ['icicle', 'flame', 'inverted'],
	width: comparing ? ['after', 'before'] : ['after'],
	native: hasRuntimes ? ['shown', 'hidden'] : ['shown'],
	theme: ['', 'light', 'dark'],
	sort: ['self', 'total', 'change', 'name', 'module'],
};
const state = {
	event: events[askedEvent],
	tab: 'graph',
	split: !comparing && captures[0].meta.event === 'wall' ? 'thread' : 'process',
	order: 'heavy',
	shape: 'icicle',
	width: 'after',
	native: 'shown',
	theme: '',
	sort: 'self',
	search: '',
	filter: null,     // {kind, key}
	ranges: captures.map(() => null), // by capture: null, or [from, to) in microseconds
	zoomPath: [],     // names from below the root
	functionName: '', // of the sandwich
	functionModule: '',
};
const initial = {...state};
const timeKeys = ['time', 'time-before'];

function writeFragment() {
	const p = new URLSearchParams();

	for (const key of Object.keys(choices)) {
		if (state[key] !== initial[key])
			p.set(key, state[key]);
	}
	if (state.search)
		p.set('search', state.search);
	if (state.filter)
		p.set('only', `${state.filter.kind}:${state.filter.key}`);
	state.ranges.forEach((range, i) => {
		if (range)
			p.set(timeKeys[i], range.map((t) => (t / 1e6).toFixed(6).replace(/\.?0+$/, '')).join('-'));
	});
	if (state.functionName) {
		p.set('function', state.functionName);
		p.set('module', state.functionModule);
	}
	for (const name of state.zoomPath)
		p.append('zoom', name);
	history.replaceState(null, '', '#' + p.toString());
}
function readRange(c, text) {
	const time = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text || '');

	return time && c.timed && Number(time[1]) < Number(time[2]) ? [time[1] * 1e6, time[2] * 1e6] : null;
}
// Unknown values keep their defaults.
function readFragment() {
	const p = new URLSearchParams(location.hash.slice(1));
	const only = /^(process|thread|container|cpu|label):([^]*)$/.exec(p.get('only') || '');

	Object.assign(state, initial);
	for (const [key, values] of Object.entries(choices)) {
		if (values.includes(p.get(key)))
			state[key] = p.get(key);
	}
	state.search = p.get('search') || '';
	state.filter = only ? {kind: only[1], key: only[2]} : null;
	state.ranges = captures.map((c, i) => readRange(c, p.get(timeKeys[i])));
	state.functionName = p.get('function') || '';
	state.functionModule = p.get('module') || '';
	state.zoomPath = p.getAll('zoom');
}

// ---- Words, numbers and elements ----

const byId = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString('en-US');
function percent(part, whole) {
	const p = whole ? (100 * part) / whole : 0;

	return (p > 0 && p < 0.1 ? p.toFixed(2) : p.toFixed(1)) + '%';
}
// Memory in use at two moments is compared by its amount, all else by its part of the whole.
const byAmount = captures[0].meta.event.startsWith('inuse_');
const wholeOf = (total) => (byAmount ? 1 : total || 1);
function changeText(change) {
	const size = Math.abs(change);

	return `${change > 0 ? '+' : change < 0 ? '−' : '±'}${byAmount ? valueText(size) : (100 * size).toFixed(2)}`;
}
// A weighted sample counts its events, which their name says, or is an amount of its unit.
const amountText = captures[0].meta.weighted ? {nanoseconds: duration, bytes}[captures[0].meta.unit] : null;
const eachCounts = captures[0].meta.weighted && !amountText && captures[0].meta.periodEvents === 1 && captures[0].meta.event;
const unit = eachCounts ? captures[0].meta.event : captures[0].meta.weighted ? 'events' : 'samples';
// A value, in a column whose head says what it is; and with its unit.
const valueText = (n) => (amountText ? amountText(n) : count(n));
const valueWithUnit = (n) => (amountText ? amountText(n) : `${count(n)} ${unit}`);
// Samples with values of their own count as fewer equal ones.
function sampleWords({sum, squares}) {
	return captures[0].meta.weighted ? `samples worth ${count(Math.round((sum * sum) / squares))} equal ones` : `${count(sum)} samples`;
}
// Three digits, more for the largest unit.
function duration(ns) {
	const [name, size] = [['s', 1e9], ['ms', 1e6], ['us', 1e3]].find(([, least]) => ns >= least) || ['ns', 1];

	return `${ns >= 1e12 ? count(Math.round(ns / size)) : Number((ns / size).toPrecision(3))} ${name}`;
}
function bytes(n) {
	const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	const i = Math.min(Math.floor(Math.log2(Math.max(n, 1)) / 10), names.length - 1);

	return `${i ? (n / 1024 ** i).toFixed(1) : n} ${names[i]}`;
}
// The total of an event that is not shown, from its raw data.
function eventWords({meta, total}) {
	const words = meta.periodNs || meta.periodEvents ? worth(total, meta).replace(` ${meta.event}`, '') : count(total);

	return `${meta.event}: ${words}${meta.periodNs ? ' of CPU time' : ''}`;
}
// The worth of samples: time, bytes, or counted events.
function worth(samples, meta = captures[0].meta) {
	const value = samples * (meta.periodNs || meta.periodEvents);

	if (meta.periodEvents && meta.unit === 'bytes')
		return bytes(value);
	if (meta.periodEvents && meta.unit !== 'nanoseconds')
		return `${count(value)} ${meta.event}`;
	return duration(value);
}
function make(tag, text, className) {
	const element = document.createElement(tag);

	if (text !== undefined)
		element.textContent = text;
	if (className)
		element.className = className;
	return element;
}
function makeButton(text, action, title) {
	const button = make('button', text);

	button.type = 'button';
	if (title)
		button.title = title;
	button.addEventListener('click', action);
	return button;
}
