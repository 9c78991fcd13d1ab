// SPDX-License-Identifier: Apache-2.0
//
// The flame graph page. The data is a call tree in preorder (symbol, depth, self) with a table of
// symbols and one of strings; everything shown is computed from it here.
//
// Three layers: the base tree as it came; a view, which is the base tree filtered, grouped or
// inverted, with its layout; and the canvas, which draws of the view what is wider than half a
// pixel and inside the window. Names are only ever drawn or set as text, never as markup.
'use strict';

(() => {
	const ROW = 19;           // height of a frame in CSS pixels
	const MIN_WIDTH = 0.5;    // narrower frames are not drawn
	const MAX_ROWS = 200;     // of the table
	const NONE = -1;
	const [NATIVE, KERNEL, JIT, INLINED, MARKER, PROCESS, OWNER] = [0, 1, 2, 3, 4, 5, 6];

	const byId = (id) => document.getElementById(id);
	const data = JSON.parse(byId('data').textContent);
	const meta = data.meta;
	const dark = matchMedia('(prefers-color-scheme: dark)');

	// ---- Words and numbers ----

	const count = (n) => n.toLocaleString('en-US');
	const percent = (part, whole) => {
		const p = whole ? (100 * part) / whole : 0;

		return (p > 0 && p < 0.1 ? p.toFixed(2) : p.toFixed(1)) + '%';
	};
	// What samples are worth: time, or events that were counted.
	const seconds = (samples) => {
		if (meta.periodEvents)
			return `${count(samples * meta.periodEvents)} ${meta.event}`;

		const s = (samples * meta.periodNs) / 1e9;

		return s >= 100 ? s.toFixed(0) + ' s' : s >= 1 ? s.toFixed(1) + ' s' : (s * 1000).toFixed(0) + ' ms';
	};
	// A weighted sample is as many as the events it stands for.
	const unit = meta.weighted ? 'events' : 'samples';
	const setText = (element, text) => {
		element.textContent = text;
		return element;
	};
	const make = (tag, text, className) => {
		const element = document.createElement(tag);

		if (text !== undefined)
			element.textContent = text;
		if (className)
			element.className = className;
		return element;
	};

	// ---- The base tree ----

	const symbolName = data.symbols.name.map((id) => data.strings[id]);
	const symbolModule = data.symbols.module.map((id) => data.strings[id]);
	const symbolKind = data.symbols.kind.slice();
	const baseSymbol = Int32Array.from(data.nodes.symbol);
	const baseDepth = Int32Array.from(data.nodes.depth);
	const baseSelf = Float64Array.from(data.nodes.self);
	const baseParent = new Int32Array(baseSymbol.length);
	const baseTotal = Float64Array.from(baseSelf);
	const ownerSymbol = new Map(); // owner's text -> symbol

	(() => {
		const path = [];

		for (let i = 0; i < baseSymbol.length; i++) {
			path[baseDepth[i]] = i;
			baseParent[i] = baseDepth[i] > 1 ? path[baseDepth[i] - 1] : NONE;
		}
		for (let i = baseSymbol.length - 1; i >= 0; i--) {
			if (baseParent[i] !== NONE)
				baseTotal[baseParent[i]] += baseTotal[i];
		}
		for (let i = 0, n = symbolName.length; i < n; i++) {
			const owner = symbolModule[i];

			if (symbolKind[i] !== PROCESS || ownerSymbol.has(owner))
				continue;
			ownerSymbol.set(owner, symbolName.length);
			symbolName.push(owner || 'no container or unit');
			symbolModule.push('');
			symbolKind.push(OWNER);
		}
	})();

	// ---- Views ----

	// One node of a view is a row of these arrays; 0 is the root, children are sorted by total.
	function buildView(process, group, order) {
		const v = {symbol: [NONE], parent: [NONE], depth: [0], self: [0]};
		const children = new Map();
		const nSymbols = symbolName.length;
		const path = [0];
		let included = true;

		function descend(parent, symbol) {
			const key = parent * nSymbols + symbol;
			let node = children.get(key);

			if (node === undefined) {
				node = v.symbol.length;
				children.set(key, node);
				v.symbol.push(symbol);
				v.parent.push(parent);
				v.depth.push(v.depth[parent] + 1);
				v.self.push(0);
			}
			return node;
		}
		function groupNode(symbol) {
			if (group === 'none')
				return 0;
			if (group === 'owner')
				return descend(descend(0, ownerSymbol.get(symbolModule[symbol])), symbol);
			return descend(0, symbol);
		}

		for (let i = 0; i < baseSymbol.length; i++) {
			const depth = baseDepth[i];

			if (depth === 1) {
				included = process === NONE || baseSymbol[i] === process;
				if (included)
					path[1] = groupNode(baseSymbol[i]);
			} else if (included && order !== 'inverted') {
				path[depth] = descend(path[depth - 1], baseSymbol[i]);
			}
			if (!included || !baseSelf[i])
				continue;
			if (order === 'inverted') {
				let node = path[1];

				for (let j = i; baseDepth[j] > 1; j = baseParent[j])
					node = descend(node, baseSymbol[j]);
				v.self[node] += baseSelf[i];
			} else {
				v.self[path[depth]] += baseSelf[i];
			}
		}
		return layOut(v);
	}

	function layOut(v) {
		const n = v.symbol.length;
		const lists = [];

		v.n = n;
		v.total = Float64Array.from(v.self);
		v.x = new Float64Array(n);
		v.height = new Int32Array(n); // levels below
		v.first = new Int32Array(n).fill(NONE);
		v.next = new Int32Array(n).fill(NONE);
		for (let i = n - 1; i > 0; i--) {
			const p = v.parent[i];

			v.total[p] += v.total[i];
			v.height[p] = Math.max(v.height[p], v.height[i] + 1);
			(lists[p] = lists[p] || []).push(i);
		}
		for (let i = 0; i < n; i++) {
			let x = v.x[i];
			let previous = NONE;

			if (!lists[i])
				continue;
			lists[i].sort((a, b) => v.total[b] - v.total[a] || v.symbol[a] - v.symbol[b]);
			for (const child of lists[i]) {
				v.x[child] = x;
				x += v.total[child];
				if (previous === NONE)
					v.first[i] = child;
				else
					v.next[previous] = child;
				previous = child;
			}
		}
		return v;
	}

	// ---- State ----

	const state = {
		view: null,
		zoom: 0,
		selected: NONE,
		hover: NONE,
		process: NONE,
		group: 'process',
		order: 'down',
		match: null,       // by symbol, 1: matches the search
		sort: 'self',
	};

	const nameOf = (node) => (node === 0 ? 'all' : symbolName[state.view.symbol[node]]);
	const kindOf = (node) => (node === 0 ? OWNER : symbolKind[state.view.symbol[node]]);

	// ---- Colours ----

	// A hue for each kind; the module's name moves it a little, so that libraries can be told apart.
	const kindColours = {
		[NATIVE]: {hue: 39, spread: 13, saturation: 82, name: 'native'},
		[KERNEL]: {hue: 212, spread: 12, saturation: 62, name: 'kernel'},
		[JIT]: {hue: 142, spread: 14, saturation: 48, name: 'JIT'},
		[INLINED]: {hue: 52, spread: 9, saturation: 68, name: 'inlined'},
		[MARKER]: {hue: 345, spread: 0, saturation: 68, name: 'incomplete'},
		[PROCESS]: {hue: 225, spread: 0, saturation: 12, name: 'process'},
		[OWNER]: {hue: 225, spread: 0, saturation: 7, name: ''},
	};
	let colours = new Map();
	let theme = {};

	function hash(text) {
		let h = 2166136261;

		for (let i = 0; i < text.length; i++)
			h = Math.imul(h ^ text.charCodeAt(i), 16777619);
		return (h >>> 0) / 4294967296;
	}
	function colourOf(kind, module, name) {
		const c = kindColours[kind];
		const hue = c.hue + (hash(module) - 0.5) * 2 * c.spread;
		const light = (dark.matches ? 33 : 74) + (c.spread ? (hash(name) - 0.5) * 7 : 0);

		return `hsl(${hue.toFixed(0)} ${dark.matches ? c.saturation * 0.64 : c.saturation}% ${light.toFixed(0)}%)`;
	}
	function symbolColour(symbol) {
		let colour = colours.get(symbol);

		if (!colour) {
			colour = symbol === NONE ? colourOf(OWNER, '', '')
				: colourOf(symbolKind[symbol], symbolModule[symbol], symbolName[symbol]);
			colours.set(symbol, colour);
		}
		return colour;
	}
	function readTheme() {
		const style = getComputedStyle(document.documentElement);
		const get = (name) => style.getPropertyValue(name).trim();

		colours = new Map();
		theme = {panel: get('--panel'), text: get('--text'), muted: get('--muted'),
			 accent: get('--accent'), mono: get('--mono'),
			 matched: dark.matches ? '#b53fa6' : '#e779d9',
			 rest: dark.matches ? '#ffffff12' : '#0000000f'};
	}

	// ---- The canvas ----

	const pane = byId('pane');
	const canvas = byId('graph');
	const context = canvas.getContext('2d');
	let size = {width: 0, height: 0, charWidth: 7};

	function ancestors(node) {
		const list = [];

		for (let n = node; n !== NONE; n = state.view.parent[n])
			list.push(n);
		return list.reverse();
	}
	const rowsShown = () => state.view.depth[state.zoom] + state.view.height[state.zoom] + 1;
	const contentHeight = () => rowsShown() * ROW;
	// Rows count from the root; where the callers are at the bottom so is row 0.
	function rowTop(row) {
		const top = row * ROW - pane.scrollTop;

		return state.order === 'up'
			? Math.max(contentHeight(), size.height) - (row + 1) * ROW - pane.scrollTop : top;
	}
	function rowAt(y) {
		const inside = y + pane.scrollTop;

		return Math.floor((state.order === 'up' ? Math.max(contentHeight(), size.height) - inside : inside) / ROW);
	}
	const scale = () => size.width / (state.view.total[state.zoom] || 1);

	function drawFrame(node, left, width, row) {
		const top = rowTop(row);
		const symbol = state.view.symbol[node];
		const matched = state.match && symbol !== NONE && state.match[symbol];
		const faint = node !== state.zoom && state.view.depth[node] < state.view.depth[state.zoom];

		if (top > size.height || top + ROW < 0)
			return;
		context.globalAlpha = faint ? 0.55 : state.match && !matched ? 0.35 : 1;
		context.fillStyle = matched ? theme.matched : symbolColour(symbol);
		context.fillRect(left, top, Math.max(width - 0.6, 0.4), ROW - 1);
		context.globalAlpha = faint || (state.match && !matched) ? 0.6 : 1;
		if (width > 22)
			drawName(nameOf(node), left + 5, top + ROW / 2, width - 9);
		context.globalAlpha = 1;
		if (node === state.selected || node === state.hover) {
			context.strokeStyle = node === state.selected ? theme.accent : theme.text;
			context.lineWidth = node === state.selected ? 2 : 1;
			context.strokeRect(left + 1, top + 1, Math.max(width - 2.6, 1), ROW - 3);
		}
	}
	function drawName(name, left, middle, room) {
		const fits = Math.floor(room / size.charWidth);

		if (fits < 2)
			return;
		context.fillStyle = theme.text;
		context.fillText(name.length <= fits ? name : name.slice(0, fits - 1) + '…', left, middle);
	}
	function drawBelow() {
		const v = state.view;
		const perPixel = scale();
		const origin = v.x[state.zoom];
		const stack = [v.first[state.zoom]];

		while (stack.length) {
			const node = stack.pop();
			const left = (v.x[node] - origin) * perPixel;
			const width = v.total[node] * perPixel;

			if (node === NONE)
				continue;
			if (width < MIN_WIDTH) {
				// Siblings are sorted: all that follow are as narrow. One faint bar stands for them.
				const end = (v.x[v.parent[node]] + v.total[v.parent[node]] - v.self[v.parent[node]] - origin) * perPixel;

				context.fillStyle = theme.rest;
				if (end - left > MIN_WIDTH)
					context.fillRect(left, rowTop(v.depth[node]), end - left, ROW - 1);
				continue;
			}
			drawFrame(node, left, width, v.depth[node]);
			stack.push(v.next[node], v.first[node]);
		}
	}
	function draw() {
		context.fillStyle = theme.panel;
		context.fillRect(0, 0, size.width, size.height);
		for (const node of ancestors(state.zoom))
			drawFrame(node, 0, size.width, state.view.depth[node]);
		drawBelow();
		byId('reset').disabled = state.zoom === 0;
	}
	let pending = false;
	function redraw() {
		if (pending)
			return;
		pending = true;
		requestAnimationFrame(() => {
			pending = false;
			draw();
		});
	}
	function resize() {
		const ratio = window.devicePixelRatio || 1;

		size.width = pane.clientWidth;
		size.height = pane.clientHeight;
		canvas.width = Math.round(size.width * ratio);
		canvas.height = Math.round(size.height * ratio);
		canvas.style.width = size.width + 'px';
		canvas.style.height = size.height + 'px';
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.font = `11.5px ${theme.mono}`;
		context.textBaseline = 'middle';
		size.charWidth = context.measureText('abcdefghijklmnopqrstuvwxyz').width / 26;
		byId('spacer').style.height = Math.max(0, contentHeight() - size.height) + 'px';
		redraw();
	}
	function nodeAt(x, y) {
		const v = state.view;
		const row = rowAt(y);
		const value = v.x[state.zoom] + x / scale();
		let node = state.zoom;

		if (row < 0)
			return NONE;
		if (row <= v.depth[state.zoom])
			return ancestors(state.zoom)[row];
		while (v.depth[node] < row) {
			node = v.first[node];
			while (node !== NONE && value >= v.x[node] + v.total[node])
				node = v.next[node];
			if (node === NONE)
				return NONE;
		}
		return node;
	}

	// ---- Zoom, selection ----

	function zoomTo(node) {
		state.zoom = node;
		state.hover = NONE;
		resize();
		pane.scrollTop = state.order === 'up' ? pane.scrollHeight : Math.max(0, (state.view.depth[node] - 2) * ROW);
		showMatched();
		showStatus(node);
	}
	function select(node) {
		const top = () => rowTop(state.view.depth[node]);

		if (node === NONE)
			return;
		state.selected = node;
		if (top() < 0)
			pane.scrollTop += top();
		else if (top() + ROW > size.height)
			pane.scrollTop += top() + ROW - size.height;
		showStatus(node);
		redraw();
	}
	function moveSelection(key) {
		const v = state.view;
		const node = state.selected === NONE ? state.zoom : state.selected;
		const outward = state.order === 'up' ? 'ArrowDown' : 'ArrowUp';

		if (key === 'ArrowLeft') {
			for (let n = v.first[v.parent[node]]; n !== undefined && n !== NONE; n = v.next[n]) {
				if (v.next[n] === node)
					select(n);
			}
		} else if (key === 'ArrowRight') {
			select(v.next[node]);
		} else if (key === outward) {
			select(v.parent[node]);
			if (state.view.depth[state.selected] < state.view.depth[state.zoom])
				zoomTo(state.selected);
		} else {
			select(v.first[node]);
		}
	}

	// ---- What is under the pointer ----

	const kindWords = ['', 'kernel', 'JIT', 'inlined', 'the stack could not be followed further', 'process', ''];

	function detail(node) {
		const v = state.view;
		const self = state.order === 'inverted' ? '' : `, self ${count(v.self[node])} (${percent(v.self[node], v.total[0])})`;

		return `${count(v.total[node])} ${unit} (${percent(v.total[node], v.total[0])}, ${seconds(v.total[node])})${self}`;
	}
	function moduleOf(node) {
		const symbol = state.view.symbol[node];

		return symbol === NONE ? '' : symbolModule[symbol];
	}
	function showStatus(node) {
		const module = node === NONE ? '' : moduleOf(node);

		setText(byId('status-text'), node === NONE ? '' : `${nameOf(node)}${module ? ` (${module})` : ''}: ${detail(node)}`);
	}
	function showTip(node, x, y) {
		const tip = byId('tip');

		tip.hidden = node === NONE;
		if (node === NONE)
			return;
		const words = [moduleOf(node), kindWords[kindOf(node)]].filter((w) => w).join(' · ');
		const lines = [make('div', nameOf(node), 'name')];

		if (words)
			lines.push(make('div', words, 'module'));
		lines.push(make('div', detail(node), 'value'));
		if (state.zoom !== 0 && state.view.depth[node] > state.view.depth[state.zoom])
			lines.push(make('div', `${percent(state.view.total[node], state.view.total[state.zoom])} of what is shown`, 'value muted'));
		tip.replaceChildren(...lines);
		const box = tip.getBoundingClientRect();
		const left = Math.min(x + 14, window.innerWidth - box.width - 8);
		const top = y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18;

		tip.style.left = Math.max(4, left) + 'px';
		tip.style.top = Math.max(4, top) + 'px';
	}

	// ---- Search ----

	function compile(text) {
		const input = byId('search');

		input.classList.remove('bad');
		try {
			return new RegExp(text, 'i');
		} catch (e) {
			input.classList.add('bad');
			return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i');
		}
	}
	function search(text) {
		state.match = null;
		if (text) {
			const expression = compile(text);

			state.match = Uint8Array.from(symbolName, (name) => (expression.test(name) ? 1 : 0));
		}
		showMatched();
		redraw();
	}
	// The share of samples with a match anywhere in the stack, of what is zoomed to.
	function showMatched() {
		const v = state.view;
		let sum = 0;
		let n = 0;

		if (!state.match) {
			setText(byId('matched'), '');
			return;
		}
		const above = ancestors(state.zoom).some((a) => a && state.match[v.symbol[a]]);
		const stack = above ? [] : [v.first[state.zoom]];

		if (above)
			sum = v.total[state.zoom];
		while (stack.length) {
			const node = stack.pop();

			if (node === NONE)
				continue;
			stack.push(v.next[node]);
			if (state.match[v.symbol[node]]) {
				sum += v.total[node];
				n++;
			} else {
				stack.push(v.first[node]);
			}
		}
		setText(byId('matched'), above || n ? `matched ${percent(sum, v.total[state.zoom])}, ${count(sum)} ${unit}` : 'no match');
	}

	// ---- Top functions ----

	function functionTotals() {
		const self = new Float64Array(symbolName.length);
		const total = new Float64Array(symbolName.length);
		const onPath = new Int32Array(symbolName.length);
		const path = [];
		let included = true;
		let all = 0;

		for (let i = 0; i < baseSymbol.length; i++) {
			const depth = baseDepth[i];

			while (path.length >= depth)
				onPath[path.pop()]--;
			path.push(baseSymbol[i]);
			onPath[baseSymbol[i]]++;
			if (depth === 1) {
				included = state.process === NONE || baseSymbol[i] === state.process;
				all += included ? baseTotal[i] : 0;
			}
			if (!included)
				continue;
			self[baseSymbol[i]] += baseSelf[i];
			// A recursive function counts once a stack: where it is outermost.
			if (onPath[baseSymbol[i]] === 1)
				total[baseSymbol[i]] += baseTotal[i];
		}
		return {self, total, all};
	}
	// The bar is relative to the largest in its column, the number to all samples.
	function shareCell(value, all, largest) {
		const cell = make('td', undefined, 'number share');
		const bar = make('i');

		bar.style.width = `calc((100% - 24px) * ${(largest ? value / largest : 0).toFixed(3)})`;
		cell.append(bar, make('span', `${count(value)}  ${percent(value, all).padStart(6)}`));
		return cell;
	}
	function showFunctions() {
		const {self, total, all} = functionTotals();
		const order = [];
		const orders = {
			self: (a, b) => self[b] - self[a] || total[b] - total[a],
			total: (a, b) => total[b] - total[a] || self[b] - self[a],
			name: (a, b) => (symbolName[a] < symbolName[b] ? -1 : symbolName[a] > symbolName[b] ? 1 : 0),
		};

		for (let i = 0; i < symbolName.length; i++) {
			if (total[i] && symbolKind[i] < PROCESS)
				order.push(i);
		}
		const largestSelf = order.reduce((m, i) => Math.max(m, self[i]), 0);
		const largestTotal = order.reduce((m, i) => Math.max(m, total[i]), 0);

		order.sort(orders[state.sort]);
		byId('rows').replaceChildren(...order.slice(0, MAX_ROWS).map((symbol) => {
			const row = make('tr');

			row.append(shareCell(self[symbol], all, largestSelf), shareCell(total[symbol], all, largestTotal),
				   make('td', symbolName[symbol]), make('td', symbolModule[symbol], 'muted'));
			row.lastChild.previousSibling.title = symbolName[symbol];
			row.addEventListener('click', () => {
				byId('search').value = '^' + symbolName[symbol].replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
				search(byId('search').value);
			});
			return row;
		}));
		for (const button of document.querySelectorAll('[data-sort]'))
			button.classList.toggle('sorted', button.dataset.sort === state.sort);
	}

	// ---- Header ----

	const losses = [
		['samples_lost', 'samples', 'samples lost: the kernel had no room in a ring'],
		['samples_dropped', 'samples', 'samples dropped: no room in the profile’s memory'],
		['throttled', '', 'times the kernel slowed an event down'],
		['records_bad', '', 'ring records that contradict themselves'],
		['sideband_lost', '', 'mapping, fork or exit records lost: names may miss'],
		['windows_degraded', '', 'windows in which a file was set aside while naming'],
		['stacks_truncated', 'stacks', 'stacks cut: deeper than the copied stack bytes'],
		['stacks_no_mapping', 'stacks', 'stacks that led to code in no known mapping'],
		['stacks_no_file', 'stacks', 'stacks that led to a file that could not be read'],
		['stacks_no_cfi', 'stacks', 'stacks that led to code without unwind information'],
		['stacks_bad_cfi', 'stacks', 'stacks that led to damaged unwind information'],
		['stacks_no_progress', 'stacks', 'stacks that lead back to themselves'],
		['stacks_too_deep', 'stacks', 'stacks with more frames than are kept'],
		['stacks_no_regs', 'stacks', 'samples without user registers'],
		['frames_unnamed', '', 'distinct addresses that no symbol covers'],
		['samples_filtered', 'quiet', 'samples not asked for'],
	];

	function showHeader() {
		const c = data.counters;
		const bases = {samples: c.samples + c.samples_lost, stacks: c.user_stacks + c.stacks_no_regs};
		const facts = byId('facts');
		const add = (label, value) => {
			const span = make('span');

			span.append(make('b', value), label ? ' ' + label : '');
			facts.append(span);
		};
		let bad = 0;
		let worst = false;

		setText(byId('title'), meta.title);
		document.title = `${meta.title} – ${meta.host || 'perfwalk'}`;
		if (meta.host)
			add('', meta.host);
		if (meta.kernel)
			add('', `Linux ${meta.kernel}`);
		if (meta.cpus)
			add(meta.cpus === 1 ? 'CPU' : 'CPUs', count(meta.cpus));
		if (meta.event)
			add(meta.rate ? `at ${meta.rate} Hz` : 'sampled', meta.event);
		add('s', (meta.durationNs / 1e9).toFixed(1));
		add(`${unit} (${seconds(data.total)}${meta.periodEvents ? '' : ' of CPU time'})`, count(data.total));
		if (meta.startMs)
			facts.append(make('span', new Date(meta.startMs).toISOString().replace('T', ' ').slice(0, 19) + ' UTC'));
		for (const [name, base, words] of losses) {
			const row = byId('quality-table').tBodies[0];

			if (!c[name] && name !== 'samples_lost')
				continue;
			bad += base === 'stacks' ? c[name] : 0;
			worst = worst || (c[name] > 0 && (base === 'samples' || name === 'sideband_lost'));
			const line = make('tr');

			line.append(make('td', count(c[name]), 'number'),
				    make('td', bases[base] ? percent(c[name], bases[base]) : '', 'number muted'), make('td', words));
			row.append(line);
		}
		if (data.cut) {
			const line = make('tr');

			line.append(make('td', count(data.cut), 'number'), make('td', percent(data.cut, data.total), 'number muted'),
				    make('td', 'samples shown at a caller: the call tree was full'));
			byId('quality-table').tBodies[0].append(line);
		}
		const whole = bases.stacks ? `${percent(bases.stacks - bad, bases.stacks)} of user stacks complete` : '';
		const lost = c.samples_lost ? `${count(c.samples_lost)} samples lost` : 'no sample lost';

		setText(byId('quality-line'), [lost, whole].filter((t) => t).join(', '));
		byId('quality').classList.toggle('warn', worst || bad > bases.stacks / 20);
	}
	function showLegend() {
		byId('legend').replaceChildren(...[NATIVE, INLINED, KERNEL, JIT, MARKER].map((kind) => {
			const item = make('span');
			const box = make('i');

			box.style.background = colourOf(kind, '', '');
			item.append(box, kindColours[kind].name);
			return item;
		}));
	}
	function fillProcesses() {
		const list = [];

		for (let i = 0; i < baseSymbol.length; i++) {
			if (baseDepth[i] === 1)
				list.push(i);
		}
		list.sort((a, b) => baseTotal[b] - baseTotal[a]);
		byId('process').append(make('option', 'all processes'), ...list.map((i) => {
			const symbol = baseSymbol[i];
			const owner = symbolModule[symbol] ? ` (${symbolModule[symbol]})` : '';
			const option = make('option', `${percent(baseTotal[i], data.total)} ${symbolName[symbol]}${owner}`);

			option.value = symbol;
			return option;
		}));
		byId('process').options[0].value = NONE;
	}

	// ---- Events ----

	function rebuild() {
		state.view = buildView(state.process, state.group, state.order);
		state.selected = state.hover = NONE;
		// A low graph leaves its room to the table.
		pane.style.maxHeight = Math.max(160, (state.view.height[0] + 1) * ROW + 8) + 'px';
		zoomTo(0);
		showFunctions();
	}
	function listen() {
		canvas.addEventListener('mousemove', (e) => {
			const node = nodeAt(e.offsetX, e.offsetY);

			if (node !== state.hover) {
				state.hover = node;
				showStatus(node === NONE ? state.zoom : node);
				redraw();
			}
			showTip(node, e.clientX, e.clientY);
		});
		canvas.addEventListener('mouseleave', () => {
			state.hover = NONE;
			showTip(NONE);
			redraw();
		});
		canvas.addEventListener('click', (e) => {
			const node = nodeAt(e.offsetX, e.offsetY);

			if (node === NONE)
				return;
			state.selected = node;
			zoomTo(node);
			showTip(NONE);
		});
		pane.addEventListener('scroll', () => {
			showTip(NONE);
			redraw();
		});
		byId('search').addEventListener('input', (e) => search(e.target.value));
		byId('reset').addEventListener('click', () => zoomTo(0));
		byId('process').addEventListener('change', (e) => {
			state.process = Number(e.target.value);
			rebuild();
		});
		byId('group').addEventListener('change', (e) => {
			state.group = e.target.value;
			rebuild();
		});
		byId('order').addEventListener('change', (e) => {
			state.order = e.target.value;
			rebuild();
		});
		for (const button of document.querySelectorAll('[data-sort]')) {
			button.addEventListener('click', () => {
				state.sort = button.dataset.sort;
				showFunctions();
			});
		}
		document.addEventListener('keydown', onKey);
		window.addEventListener('resize', resize);
		dark.addEventListener('change', () => {
			readTheme();
			showLegend();
			redraw();
		});
	}
	function onKey(e) {
		const inSearch = document.activeElement === byId('search');
		const inForm = inSearch || document.activeElement.tagName === 'SELECT';

		if (e.ctrlKey || e.metaKey || e.altKey)
			return;
		if (e.key === 'Escape') {
			if (state.match || byId('search').value) {
				byId('search').value = '';
				search('');
			} else {
				zoomTo(0);
			}
			canvas.focus();
		} else if (e.key === '/' && !inForm) {
			byId('search').focus();
			byId('search').select();
			e.preventDefault();
		} else if (e.key.startsWith('Arrow') && !inForm) {
			moveSelection(e.key);
			e.preventDefault();
		} else if (e.key === 'Enter' && document.activeElement === canvas && state.selected !== NONE) {
			zoomTo(state.selected);
		} else if (e.key === 'Backspace' && !inForm && state.zoom !== 0) {
			zoomTo(state.view.parent[state.zoom]);
		}
	}

	readTheme();
	showHeader();
	showLegend();
	fillProcesses();
	rebuild();
	listen();
	document.documentElement.dataset.ready = String(state.view.total[0]);
})();
