// SPDX-License-Identifier: Apache-2.0
//
// Part 13: the control flow. A change of the tree (split, shape, order) builds a view; a
// change of the selection (filter, range) adds up anew; both end in show().

const trees = new Map(); // split and shape to tree
let active = [];         // by capture: the selected samples
let baseWeights = [];    // by capture: their weights by node of its tree
let wholes = [];         // by capture: their weight
let match = null;        // by symbol, 1: matches the search
let searchFault = '';    // why the search expression is invalid
const heatMaps = [];
let focusGraph = null;   // the graph that the details are about
let focusNode = NONE;

const graph = new Graph(byId('pane'), graphEvents(() => graph, true));
const callers = new Graph(byId('callers'), graphEvents(() => callers, false));
const callees = new Graph(byId('callees'), graphEvents(() => callees, false));
const graphs = [graph, callers, callees];

const widthIndex = () => (state.width === 'before' ? 1 : 0);
const isSelection = () => Boolean(state.filter) || state.ranges.some((range) => range);

// ---- Selection and views ----

function select() {
	if (showNativeFrames(state.native === 'shown'))
		trees.clear();
	active = captures.map((c, i) => selectSamples(c, state.filter, state.ranges[i]));
	baseWeights = captures.map((c, i) => weighByNode(c, active[i], c.samples.node, c.tree.n));
	wholes = baseWeights.map(({sum, squares}) => ({sum: sumOf(sum), squares: sumOf(squares)}));
}
function currentTree() {
	const key = `${state.split} ${state.shape === 'inverted'}`;

	if (state.order === 'time')
		return buildTimeline(state.split, active[0].length > 30000 ? active[0].subarray(0, 30000) : active[0]);
	if (!trees.has(key))
		trees.set(key, buildTree(state.split, state.shape === 'inverted'));
	return trees.get(key);
}
function findPath(view, names) {
	let node = 0;

	for (const name of names) {
		let found = NONE;

		for (let j = view.childStart[node]; j < view.childStart[node + 1] && found === NONE; j++) {
			const child = view.children[j];

			if (symbols.name[view.symbol[child]] === name && view.total[child])
				found = child;
		}
		if (found === NONE)
			break;
		node = found;
	}
	return node;
}
function showGraph() {
	const tree = currentTree();
	const shown = tree.timeline && active[0].length > 30000 ? [active[0].subarray(0, 30000)] : active;
	const weights = captures.map((c, i) => weighByNode(c, shown[i], tree.sampleNodes[i], tree.n));
	const view = layOut(tree, weights, state.order, widthIndex());

	byId('limit').hidden = shown[0] === active[0];
	byId('empty').hidden = captures.some((c) => c.total);
	byId('empty').textContent = byId('empty').hidden ? '' : whyEmpty(captures[0].counters);
	graph.show(view, {zoom: findPath(view, state.zoomPath), upward: state.shape === 'flame',
			  rootName: isSelection() ? 'selection' : 'all'});
	showPath();
}
function rowsOf(tab) {
	const weigh = (keys, n) => captures.map((c, i) => weighByKey(c, baseWeights[i], keys, n));

	if (tab === 'containers')
		return containerRows(weighContainers(active), wholes);
	if (tab === 'modules') {
		const keys = keysOfModules();

		return moduleRows(weigh(keys, moduleNames.length), wholes);
	}
	return functionRows(weigh(functionKeys(), symbols.name.length), wholes);
}
function showTable(tab) {
	const expression = state.search ? compileSearch(state.search).expression : null;
	const rows = rowsOf(tab);
	const found = expression ? rows.filter((r) => expression.test(r.name) || expression.test(r.module)) : rows;
	const columns = (tab === 'containers' ? ['total'] : ['self', 'total']).concat(comparing ? ['change'] : [], ['name'], tab === 'functions' ? ['module'] : []);

	byId('table').replaceChildren(tableNote(found.length, rows.length, tab),
		makeTable(columns, found, wholes[0], (sort) => change({sort}), {functions: openSandwich, modules: openModule, containers: openContainer}[tab]));
}
function showLocks() {
	const {locks} = captures[0];

	byId('table').replaceChildren(make('p', `${count(locks.length)} locks in the whole capture`, 'note muted'),
		makeLocks(locks, (name) => change({tab: 'graph', search: escapeExpression(name)})));
}
function showChanges() {
	const keys = functionKeys();
	const sums = captures.map((c, i) => weighByKey(c, baseWeights[i], keys, keys.length));

	byId('table').replaceChildren(makeChanges(sums, wholes, openSandwich));
}
function sandwichSymbol() {
	for (let symbol = 0; symbol < symbols.name.length; symbol++) {
		if (symbols.name[symbol] === state.functionName && symbols.module[symbol] === state.functionModule &&
		    symbols.kind[symbol] !== PROCESS && symbols.kind[symbol] !== GROUP)
			return symbol;
	}
	return NONE;
}
function showSandwich() {
	let symbol = sandwichSymbol();

	if (symbol === NONE) {
		const [first] = rowsOf('functions').sort((a, b) => b.self - a.self);

		if (!first)
			return;
		symbol = first.symbol;
		state.functionName = first.name;
		state.functionModule = first.module;
	}
	const below = buildCallees(symbol, baseWeights);

	callees.show(below);
	callers.show(buildCallers(symbol, baseWeights), {upward: true});
	// Each gets the room that the other leaves.
	callees.resize();
	byId('sandwich-title').textContent = `${symbols.name[symbol]}: ${valueWithUnit(below.total[0])} (${percent(below.total[0], wholes[0].sum)}), self ${valueText(below.self[0])}`;
}
function openSandwich(row) {
	change({tab: 'sandwich', functionName: row.name, functionModule: row.module});
}
function openModule(row) {
	change({tab: 'functions', search: `^${escapeExpression(row.name)}$`});
}
function openContainer(row) {
	change({tab: 'graph', filter: {kind: 'container', key: row.name}});
}
function show() {
	for (const button of byId('tabs').children)
		button.setAttribute('aria-selected', String(button.dataset.tab === state.tab));
	byId('graph-tab').hidden = byId('path').hidden = state.tab !== 'graph';
	byId('sandwich-tab').hidden = state.tab !== 'sandwich';
	byId('table').hidden = ['graph', 'sandwich'].includes(state.tab);
	byId('details').hidden = !['graph', 'sandwich'].includes(state.tab);
	compileMatch();
	if (state.tab === 'graph')
		showGraph();
	else if (state.tab === 'sandwich')
		showSandwich();
	else if (state.tab === 'changes')
		showChanges();
	else if (state.tab === 'locks')
		showLocks();
	else
		showTable(state.tab);
	showMatched();
	showDetails(state.tab === 'sandwich' ? callees : graph, NONE);
}
// Applies a change of the state and shows it. Sums are made again only if the selection changed.
function change(what) {
	const began = performance.now();
	const selected = ['filter', 'ranges', 'native'].some((key) => key in what);

	Object.assign(state, what);
	if (selected)
		select();
	for (const heat of heatMaps) {
		if ('filter' in what)
			heat.count(selectSamples(captures[heat.number], state.filter, null));
		else if (selected)
			heat.draw();
	}
	show();
	syncControls();
	writeFragment();
	page.lastMs = performance.now() - began;
}

function changeRange(number, range) {
	change({ranges: state.ranges.map((r, i) => (i === number ? range : r))});
}
function clearRanges() {
	change({ranges: captures.map(() => null)});
}

// ---- Path, details, search ----

function showPath() {
	const nodes = graph.pathTo(graph.zoom);

	byId('path').replaceChildren(...nodes.map((node, i) => {
		const button = makeButton(graph.nameOf(node), () => graph.zoomTo(node));

		if (i === nodes.length - 1)
			button.setAttribute('aria-current', 'location');
		return button;
	}));
	state.zoomPath = nodes.slice(1).map((node) => symbols.name[graph.view.symbol[node]]);
}
function placeWords(view, node) {
	const c = captures[view.capture ? view.capture[node] : 0];
	const place = view.place[node];
	const symbol = view.symbol[node];
	const address = place === NONE ? 0 : c.places.high[place] * 4294967296 + c.places.low[place];
	const line = place === NONE ? 0 : c.places.line[place] || symbols.line[symbol];
	const words = [];

	if (symbol === NONE)
		return words;
	if (symbols.module[symbol])
		words.push(symbols.module[symbol]);
	if (symbols.file[symbol])
		words.push(symbols.file[symbol] + (line ? `:${line}` : ''));
	if (address)
		words.push('0x' + (c.places.high[place] ? c.places.high[place].toString(16) + c.places.low[place].toString(16).padStart(8, '0')
			: c.places.low[place].toString(16)));
	return words;
}
function kindWords(symbol) {
	const entry = symbol === NONE ? null : kinds.find((k) => k.kind === symbols.kind[symbol]);

	return entry ? entry.name : '';
}
function valueWords(view, node) {
	const all = view.total[0];
	const self = view.inverted ? '' : `, self ${valueText(view.self[node])} (${percent(view.self[node], all)})`;
	const {periodNs, periodEvents} = captures[0].meta;
	const worthWords = !amountText && !eachCounts && (periodNs || periodEvents) ? `, ${worth(view.total[node])}` : '';
	const words = `${valueWithUnit(view.total[node])} (${percent(view.total[node], all)}${worthWords})${self}`;

	if (!comparing)
		return words;
	const [after, before] = view.totals.map((total) => total[node] / wholeOf(total[0]));

	return `${words}; before ${valueText(view.totals[1][node])} (${percent(view.totals[1][node], view.totals[1][0])}), change ${changeText(after - before)}${byAmount ? '' : ' points'}`;
}
// The confidence of the share. In the order of time a node is a part of the time, not a share.
function confidenceWords(view, node) {
	const roots = view.weights.map((column) => weightAt(column, 0));
	const [after, before] = view.weights.map((column, i) => intervalText(weightAt(column, node), roots[i]));
	const self = view.inverted || !view.self[node] ? '' : `, self ${intervalText(weightAt(view.selfWeights[0], node), roots[0])}`;
	const noise = view.noise ? `; the change is ${view.noise[node] ? 'within' : 'more than'} noise` : '';

	if (!after || !node || view.timeline)
		return '';
	if (comparing)
		return `95% interval ${after}, before ${before}${noise}`;
	return `of ${sampleWords(roots[0])}, 95% interval ${after}${self}`;
}
function showDetails(of, node) {
	focusGraph = of;
	focusNode = node;
	const shown = node === NONE ? of.zoom : node;
	const words = of.view ? [kindWords(of.view.symbol[shown]), ...placeWords(of.view, shown)].filter((w) => w) : [];

	byId('detail-name').textContent = of.view ? of.nameOf(shown) : '';
	byId('detail-words').textContent = of.view ? [valueWords(of.view, shown), confidenceWords(of.view, shown), ...words].filter((w) => w).join(' · ') : '';
}
function showTip(of, node, x, y) {
	if (node === NONE) {
		placeTip(null);
		return;
	}
	const words = [kindWords(of.view.symbol[node]), ...placeWords(of.view, node)].filter((w) => w);

	placeTip([make('div', of.nameOf(node).slice(0, 600), 'name'), make('div', valueWords(of.view, node)), make('div', confidenceWords(of.view, node)),
		  make('div', words.join(' · '), 'muted')], x, y);
}
// lines: elements, null for none.
function placeTip(lines, x, y) {
	const tip = byId('tip');

	tip.hidden = !lines;
	if (!lines)
		return;
	tip.replaceChildren(...lines);
	const box = tip.getBoundingClientRect();
	const left = Math.min(x + 14, window.innerWidth - box.width - 8);

	tip.style.left = Math.max(4, left) + 'px';
	tip.style.top = Math.max(4, y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18) + 'px';
}
function graphEvents(of, zoomIsState) {
	return {
		onFocus: (node) => showDetails(of(), node),
		onHover: (node, x, y) => showTip(of(), node, x, y),
		onZoom: () => {
			showTip(of(), NONE);
			showDetails(of(), NONE);
			if (!zoomIsState)
				return;
			showPath();
			showMatched();
			writeFragment();
		},
	};
}
function showMatched() {
	const view = graph.view;

	const words = searchFault ? [searchFault] : [];

	if (match && view) {
		const {sum, frames} = sumMatched(view, graph.zoom, match);

		words.push(frames ? `${percent(sum, view.total[graph.zoom])} matched, ${valueWithUnit(sum)}, ${count(frames)} frames` : 'no match');
	}
	byId('matched').textContent = words.join(': ');
}
function compileMatch() {
	match = null;
	searchFault = '';
	if (state.search) {
		const {expression, bad} = compileSearch(state.search);

		searchFault = bad;
		match = Uint8Array.from(symbols.name, (name) => (expression.test(name) ? 1 : 0));
	}
	byId('search').setAttribute('aria-invalid', String(searchFault !== ''));
	for (const g of graphs)
		g.match = match;
}
function showSearch() {
	compileMatch();
	for (const g of state.tab === 'graph' ? [graph] : [callers, callees])
		g.draw();
	showMatched();
}
function search(text) {
	const began = performance.now();

	state.search = text;
	if (['graph', 'sandwich'].includes(state.tab))
		showSearch();
	else
		show();
	writeFragment();
	page.lastMs = performance.now() - began;
}
function copyText(text) {
	const area = make('textarea', text);
	const back = document.activeElement;

	// Not every browser has the clipboard interface for files, but all have this command.
	area.className = 'copying';
	document.body.append(area);
	area.select();
	const done = document.execCommand('copy');

	area.remove();
	back.focus();
	page.copied = text;
	byId('copied').textContent = done ? 'copied' : 'the browser does not allow copying';
	setTimeout(() => {
		byId('copied').textContent = '';
	}, 2000);
}
function copyName() {
	copyText(focusGraph.nameOf(focusNode === NONE ? focusGraph.zoom : focusNode));
}
function copyStack() {
	const names = focusGraph.pathTo(focusNode === NONE ? focusGraph.zoom : focusNode).filter((n) => n > 0).map((n) => focusGraph.nameOf(n));

	copyText(names.join('\n'));
}
function sandwichOfFocus() {
	const symbol = focusGraph.view.symbol[focusNode === NONE ? focusGraph.zoom : focusNode];

	if (symbol !== NONE && symbols.kind[symbol] !== PROCESS && symbols.kind[symbol] !== GROUP)
		openSandwich({name: symbols.name[symbol], module: symbols.module[symbol]});
}

// ---- Controls ----

// The choices, largest first, with their share of the range; for a comparison also those that are
// only in the older capture.
function fillFilters() {
	const list = byId('filter');
	const chosen = captures.map((c, i) => selectSamples(c, null, state.ranges[i]));

	list.replaceChildren(new Option('everything', ''));
	for (const [kind, label] of [['process', 'Process'], ['thread', 'Thread'], ['container', 'Container or unit'], ['cpu', 'CPU']]) {
		const group = make('optgroup');
		const shares = new Map();

		captures.forEach((c, number) => {
			const key = filterKeys(c, kind);
			const sums = new Map();
			let all = 0;

			for (const i of chosen[number]) {
				sums.set(key(i), (sums.get(key(i)) || 0) + c.samples.value[i]);
				all += c.samples.value[i];
			}
			for (const [name, value] of sums) {
				if (!shares.has(name))
					shares.set(name, {share: value / all, number});
			}
		});
		group.label = label;
		for (const [name, {share, number}] of [...shares].sort((a, b) => b[1].share - a[1].share).slice(0, 100))
			group.append(new Option(`${percent(share, 1)} ${number ? 'before: ' : ''}${kind === 'cpu' ? `CPU ${name}` : name.slice(0, 60)}`, `${kind}:${name}`));
		list.append(group);
	}
	fillLabels(list, chosen);
	showFilter();
}
// A group for each key of labels, those first that a backend goes by.
function fillLabels(list, chosen) {
	const first = ['service.name', 'trace_id', 'span_id'];
	const keys = new Map();

	captures.forEach((c, number) => {
		for (const i of chosen[number]) {
			for (const label of c.threads[c.samples.thread[i]].labels) {
				const key = label.slice(0, label.indexOf('='));

				if (!keys.has(key))
					keys.set(key, new Map());
				keys.get(key).set(label, (keys.get(key).get(label) || 0) + c.samples.value[i]);
			}
		}
	});
	for (const key of [...new Set([...first, ...[...keys.keys()].sort()])].filter((k) => keys.has(k)).slice(0, 12)) {
		const group = make('optgroup');

		group.label = key;
		for (const [label] of [...keys.get(key)].sort((a, b) => b[1] - a[1]).slice(0, 100))
			group.append(new Option(label.slice(key.length + 1, key.length + 61), `label:${label}`));
		list.append(group);
	}
}
// The current choice, even if the range has no samples of it.
function showFilter() {
	const list = byId('filter');
	const value = state.filter ? `${state.filter.kind}:${state.filter.key}` : '';

	list.value = value;
	if (list.value !== value) {
		list.append(new Option(state.filter.key.slice(0, 60), value));
		list.value = value;
	}
}
function syncControls() {
	for (const key of ['event', 'split', 'order', 'shape', 'width', 'native'])
		byId(key).value = state[key];
	byId('search').value = state.search;
	byId('label').hidden = !captures.some((c) => c.threads.some((t) => t.labels.length));
	byId('label').value = state.filter && state.filter.kind === 'label' ? state.filter.key : '';
	showFilter();
	byId('theme').textContent = isDark() ? 'Light' : 'Dark';
}
function setTheme(dark) {
	state.theme = dark === undefined ? (isDark() ? 'light' : 'dark') : dark;
	applyTheme();
	syncControls();
	writeFragment();
}
function applyTheme() {
	readTheme();
	showLegend();
	graphs.forEach((g) => g.draw());
	heatMaps.forEach((heat) => heat.draw());
}
function cycle(key) {
	const values = choices[key];

	change({[key]: values[(values.indexOf(state[key]) + 1) % values.length]});
}
function toggleHelp(open) {
	const help = byId('help');

	if (open === undefined ? !help.open : open)
		help.showModal();
	else if (help.open)
		help.close();
}
const keys = {
	'?': () => toggleHelp(),
	'/': () => byId('search').select(),
	n: () => graph.selectMatch(1),
	N: () => graph.selectMatch(-1),
	c: copyName,
	C: copyStack,
	w: sandwichOfFocus,
	e: () => events.length > 1 && showEvent(events[(shownEvent + 1) % events.length]),
	s: () => cycle('split'),
	o: () => cycle('order'),
	f: () => cycle('shape'),
	i: () => cycle('native'),
	b: () => comparing && cycle('width'),
	d: () => setTheme(),
	t: () => heatMaps.length && heatMaps[0].canvas.focus(),
	r: clearRanges,
	Backspace: () => graph.zoom && graph.zoomTo(graph.view.parent[graph.zoom]),
	0: () => graph.zoomTo(0),
};
tabs.forEach((tab, i) => {
	keys[i + 1] = () => change({tab});
});

function onEscape() {
	if (byId('search').value)
		search(byId('search').value = '');
	else if (heatMaps.some((heat) => heat.range && heat.canvas === document.activeElement))
		clearRanges();
	else
		graph.zoomTo(0);
	byId('graph').focus();
}
function onKey(e) {
	const at = document.activeElement;
	const inForm = ['INPUT', 'SELECT'].includes(at.tagName);
	const g = at === callers.canvas ? callers : at === callees.canvas ? callees : graph;

	if (e.ctrlKey || e.metaKey || e.altKey || (byId('help').open && e.key !== '?'))
		return;
	if (e.key === 'Escape') {
		onEscape();
	} else if (inForm || (at.tagName === 'BUTTON' && e.key === 'Enter')) {
		return;
	} else if (e.key.startsWith('Arrow')) {
		const heat = heatMaps.find((h) => h.canvas === at);

		if (heat)
			heat.move(e.key, e.shiftKey);
		else if (g !== graph || state.tab === 'graph')
			g.move(e.key);
		else
			return;
	} else if (e.key === 'Enter' && g.selected !== NONE) {
		g.zoomTo(g.selected);
	} else if (keys[e.key]) {
		keys[e.key]();
	} else {
		return;
	}
	e.preventDefault();
}
// On paper everything is light, and the graphs are drawn for it.
function printWhole(on) {
	const kept = state.theme;

	state.theme = on ? 'light' : kept;
	readTheme();
	showLegend();
	for (const g of graphs.filter((each) => each.view)) {
		g.paperRows = on ? (g === graph ? PAPER_ROWS : PAPER_ROWS / 2) : 0;
		g.resize();
	}
	for (const heat of heatMaps) {
		heat.paper = on;
		heat.resize();
	}
	const left = graph.view ? Math.ceil((graph.contentHeight - graph.tall) / ROW) : 0;

	byId('paper').hidden = !on || state.tab !== 'graph' || !left;
	byId('paper').textContent = `${count(left)} deeper levels are not printed: zoom in to print them.`;
	state.theme = kept;
}
function listen() {
	byId('search').addEventListener('input', (e) => search(e.target.value));
	byId('event').addEventListener('change', (e) => showEvent(e.target.value));
	for (const key of ['split', 'order', 'shape', 'width', 'native'])
		byId(key).addEventListener('change', (e) => change({[key]: e.target.value}));
	byId('filter').addEventListener('focus', fillFilters);
	byId('label').addEventListener('change', (e) => {
		const text = e.target.value.trim();

		change({filter: text ? {kind: 'label', key: labelOf(text)} : null});
	});
	byId('filter').addEventListener('change', (e) => {
		const at = e.target.value.indexOf(':');

		change({filter: at < 0 ? null : {kind: e.target.value.slice(0, at), key: e.target.value.slice(at + 1)}});
	});
	for (const [id, action] of [['copy-name', copyName], ['copy-stack', copyStack], ['around', sandwichOfFocus],
		['theme', () => setTheme()], ['help-button', () => toggleHelp(true)], ['help-close', () => toggleHelp(false)],
		])
		byId(id).addEventListener('click', action);
	document.addEventListener('keydown', onKey);
	window.addEventListener('resize', () => {
		graphs.filter((g) => g.view).forEach((g) => g.resize());
		heatMaps.forEach((heat) => heat.resize());
	});
	window.addEventListener('hashchange', restore);
	window.addEventListener('beforeprint', () => printWhole(true));
	window.addEventListener('afterprint', () => printWhole(false));
	darkPreferred.addEventListener('change', applyTheme);
}
// Selection and zoom stay, as far as they exist.
function showEvent(event) {
	state.event = event;
	writeFragment();
	location.reload();
}
function restore() {
	if (eventIn(location.hash) !== shownEvent) {
		location.reload();
		return;
	}
	readFragment();
	readTheme();
	showLegend();
	change({filter: state.filter, ranges: state.ranges});
}

// For tests and for readers at the console.
const page = {state, graph, graphs, callers, callees, captures, symbols, heatMaps, memory: null, lastMs: 0, copied: '', kinds, stateColours, interval, pValue};
window.perfwalk = page;

byId('tabs').append(...tabs.map((tab, i) => {
	const button = makeButton(tab[0].toUpperCase() + tab.slice(1), () => change({tab}), `key ${i + 1}`);

	button.setAttribute('role', 'tab');
	button.dataset.tab = tab;
	return button;
}));
if (comparing)
	byId('order').querySelector('[value=time]').remove();
byId('width').hidden = !comparing;
byId('native').hidden = !hasRuntimes;
byId('event').hidden = events.length < 2;
byId('event').append(...events.map((event, i) => new Option(eventWords(inFile[i]), event)));
byId('time').hidden = !captures.some((c) => c.timed);
captures.forEach((c, i) => {
	if (c.timed)
		heatMaps.push(new HeatMap(i, comparing ? ['after', 'before'][i] : '', (range) => changeRange(i, range)));
	else if (comparing)
		byId('time').append(make('p', `${['after', 'before'][i]}: no heat map, its samples have no times`, 'muted'));
});
if (heatMaps.length && residents.length + kills.length)
	heatMaps[0].below = page.memory = new MemoryLines(heatMaps[0]);
showHeader();
fillFilters();
listen();
restore();
document.documentElement.dataset.ready = String(graph.view ? graph.view.total[0] : captures[0].total);
page.readyMs = performance.now();
