// SPDX-License-Identifier: Apache-2.0
//
// Part 8: a tree on a canvas. Only frames that are wider than half a pixel and inside the window
// are drawn. The element that onFocus fills says in words what the canvas shows.
// On paper a canvas is as wide as the paper, and as high as fits with a width of PAPER_WIDTH
// pixels; deeper frames need a zoom.

const ROW = 19;        // height of a frame in CSS pixels
const MIN_WIDTH = 0.5; // narrower frames are not drawn
const PAPER_WIDTH = 1300;
const PAPER_ROWS = comparing ? 20 : 28;
const PAPER_RATIO = 3; // pixels of the bitmap to one of these

class Graph {
	// events: onFocus(node or NONE), onZoom(node), onOpen(node)
	constructor(pane, events) {
		this.pane = pane;
		this.canvas = pane.querySelector('canvas');
		this.pen = this.canvas.getContext('2d');
		this.spacer = pane.querySelector('.spacer');
		this.events = events;
		this.view = null;
		this.zoom = 0;
		this.selected = this.hover = NONE;
		this.upward = false;
		this.paperRows = 0; // 0: on the screen
		this.match = null;
		this.rootName = 'all';
		this.listen();
	}
	show(view, {zoom = 0, upward = false, rootName = 'all'} = {}) {
		const other = view !== this.view || upward !== this.upward;

		Object.assign(this, {view, zoom, upward, rootName, selected: NONE, hover: NONE});
		this.resize();
		// Another selection of the same tree keeps its scroll position.
		if (other)
			this.pane.scrollTop = upward ? this.pane.scrollHeight : 0;
	}
	nameOf(node) {
		return this.view.symbol[node] === NONE ? this.rootName : symbols.name[this.view.symbol[node]];
	}
	pathTo(node) {
		const list = [];

		for (let n = node; n !== NONE; n = this.view.parent[n])
			list.push(n);
		return list.reverse();
	}

	// ---- Geometry ----

	get contentHeight() {
		return (this.view.depth[this.zoom] + this.view.height[this.zoom] + 1) * ROW;
	}
	get scale() {
		return this.width / (this.view.total[this.zoom] || 1);
	}
	// Rows count from the root; where the callers are at the bottom so is row 0.
	rowTop(row) {
		if (this.paperRows)
			return this.upward ? this.tall - (row + 1) * ROW : row * ROW;
		return this.upward ? Math.max(this.contentHeight, this.tall) - (row + 1) * ROW - this.pane.scrollTop
			: row * ROW - this.pane.scrollTop;
	}
	rowAt(y) {
		const inside = y + this.pane.scrollTop;

		return Math.floor((this.upward ? Math.max(this.contentHeight, this.tall) - inside : inside) / ROW);
	}
	nodeAt(x, y) {
		const v = this.view;
		const row = this.rowAt(y);
		const value = v.x[this.zoom] + x / this.scale;
		let node = this.zoom;

		if (row < 0 || !v.total[this.zoom])
			return NONE;
		if (row <= v.depth[this.zoom])
			return this.pathTo(this.zoom)[row];
		while (node !== NONE && v.depth[node] < row) {
			let next = NONE;

			for (let j = v.childStart[node]; j < v.childStart[node + 1]; j++) {
				const child = v.children[j];

				if (value >= v.x[child] && value < v.x[child] + v.total[child])
					next = child;
			}
			node = next;
		}
		return node;
	}
	// The place of a frame in the window, for a test that clicks it. null: not visible.
	boxOf(node) {
		const box = this.canvas.getBoundingClientRect();
		const left = (this.view.x[node] - this.view.x[this.zoom]) * this.scale;

		return {x: box.left + left, y: box.top + this.rowTop(this.view.depth[node]), width: this.view.total[node] * this.scale, height: ROW};
	}
	resize() {
		const ratio = this.paperRows ? PAPER_RATIO : window.devicePixelRatio || 1;

		const {scrollTop} = this.pane;
		const fromRoot = this.upward ? this.spacer.offsetHeight - scrollTop : scrollTop;

		// The height comes first, because a scroll bar reduces the width.
		this.spacer.style.height = '0';
		this.canvas.style.height = '10px';
		this.pane.style.setProperty('--content', `${this.contentHeight + 2}px`);
		this.width = this.paperRows ? PAPER_WIDTH : this.pane.clientWidth;
		this.tall = this.paperRows ? Math.min(this.paperRows * ROW, this.contentHeight) : Math.max(this.pane.clientHeight, ROW);
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.tall * ratio);
		this.canvas.style.width = this.width + 'px';
		this.canvas.style.height = this.tall + 'px';
		this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.spacer.style.height = Math.max(0, this.contentHeight - this.tall) + 'px';
		this.pane.scrollTop = this.upward ? this.spacer.offsetHeight - fromRoot : fromRoot;
		this.draw();
	}

	// ---- Drawing ----

	draw() {
		const {pen, view: v} = this;

		if (!v)
			return;
		pen.font = `11.5px ${theme.mono}`;
		pen.textBaseline = 'middle';
		this.charWidth = pen.measureText('abcdefghijklmnopqrstuvwxyz').width / 26;
		pen.clearRect(0, 0, this.width, this.tall);
		if (!v.total[this.zoom]) {
			pen.fillStyle = theme.muted;
			pen.fillText('No sample in this selection.', 10, 24);
			return;
		}
		for (const node of this.pathTo(this.zoom))
			this.drawFrame(node, 0, this.width, v.depth[node]);
		this.drawBelow();
	}
	drawBelow() {
		const v = this.view;
		const perPixel = this.scale;
		const origin = v.x[this.zoom];
		const stack = [this.zoom];

		while (stack.length) {
			const node = stack.pop();
			const row = v.depth[node] + 1;
			let narrowFrom = -1;
			let narrowTo = -1;

			for (let j = v.childStart[node]; j < v.childStart[node + 1]; j++) {
				const child = v.children[j];
				const left = (v.x[child] - origin) * perPixel;
				const width = v.total[child] * perPixel;

				if (width >= MIN_WIDTH) {
					this.drawFrame(child, left, width, row);
					stack.push(child);
				} else if (width > 0) {
					narrowFrom = narrowFrom < 0 ? left : narrowFrom;
					narrowTo = left + width;
				}
			}
			// One faint bar stands for all that are too narrow.
			if (narrowTo - narrowFrom > MIN_WIDTH && !v.timeline) {
				this.pen.fillStyle = theme.rest;
				this.pen.fillRect(narrowFrom, this.rowTop(row), narrowTo - narrowFrom, ROW - 1);
			}
		}
	}
	fillOf(node) {
		const v = this.view;

		if (!comparing && byState && v.symbol[node] !== NONE)
			return stateColour(v, node);
		if (!comparing || v.symbol[node] === NONE)
			return symbolColour(v.symbol[node]);
		if (v.noise && v.noise[node])
			return changeColour(1, 1);
		return changeColour(v.totals[1][node] / wholeOf(v.totals[1][0]), v.totals[0][node] / wholeOf(v.totals[0][0]));
	}
	drawFrame(node, left, width, row) {
		const {pen} = this;
		const top = this.rowTop(row);
		const symbol = this.view.symbol[node];
		const matched = this.match && symbol !== NONE && this.match[symbol];
		const faint = (this.match && !matched) || row < this.view.depth[this.zoom];

		if (top > this.tall || top + ROW < 0)
			return;
		pen.globalAlpha = faint ? 0.4 : 1;
		pen.fillStyle = matched ? theme.match : this.fillOf(node);
		pen.fillRect(left, top, Math.max(width - 0.6, 0.4), ROW - 1);
		if (symbol !== NONE && symbols.kind[symbol] === MARKER) {
			pen.fillStyle = hatching;
			pen.fillRect(left, top, Math.max(width - 0.6, 0.4), ROW - 1);
		} else if (symbol !== NONE) {
			drawMark(pen, symbols.kind[symbol], left, top, width - 0.6, ROW - 1);
		}
		pen.globalAlpha = faint ? 0.65 : 1;
		if (width > 22)
			this.drawName(this.nameOf(node), left + 5, top + ROW / 2, width - 9);
		pen.globalAlpha = 1;
		if (node === this.selected || node === this.hover) {
			pen.strokeStyle = node === this.selected ? theme.accent : theme.text;
			pen.lineWidth = node === this.selected ? 2 : 1;
			pen.strokeRect(left + 1, top + 1, Math.max(width - 2.6, 1), ROW - 3);
		}
	}
	drawName(name, left, middle, room) {
		const fits = Math.floor(room / this.charWidth);

		if (fits < 2)
			return;
		this.pen.fillStyle = theme.text;
		this.pen.fillText(name.length <= fits ? name : name.slice(0, fits - 1) + '…', left, middle, room + 4);
	}

	// ---- Zoom and selection ----

	zoomTo(node) {
		this.zoom = node;
		this.selected = node || NONE;
		this.hover = NONE;
		this.resize();
		this.pane.scrollTop = this.upward ? this.pane.scrollHeight : Math.max(0, (this.view.depth[node] - 2) * ROW);
		this.draw();
		this.events.onZoom(node);
	}
	select(node) {
		if (node === NONE)
			return;
		this.selected = node;
		const top = this.rowTop(this.view.depth[node]);

		if (top < 0)
			this.pane.scrollTop += top;
		else if (top + ROW > this.tall)
			this.pane.scrollTop += top + ROW - this.tall;
		this.draw();
		this.events.onFocus(node);
	}
	move(key) {
		const v = this.view;
		const node = this.selected === NONE ? this.zoom : this.selected;
		const outward = this.upward ? 'ArrowDown' : 'ArrowUp';

		if (key === 'ArrowLeft' || key === 'ArrowRight') {
			this.select(sibling(v, node, key === 'ArrowLeft' ? -1 : 1));
		} else if (key === outward) {
			this.select(v.parent[node]);
			if (this.selected !== NONE && v.depth[this.selected] < v.depth[this.zoom])
				this.zoomTo(this.selected);
		} else {
			this.select(firstChild(v, node));
		}
	}
	// The next frame that matches the search, in the order of the tree.
	selectMatch(direction) {
		const v = this.view;
		const from = this.selected === NONE ? 0 : this.selected;

		for (let step = 1; this.match && step < v.n; step++) {
			const node = (from + direction * step + v.n * 2) % v.n;

			if (v.total[node] && v.symbol[node] !== NONE && this.match[v.symbol[node]]) {
				if (this.pathTo(node)[v.depth[this.zoom]] !== this.zoom)
					this.zoomTo(0);
				this.select(node);
				return;
			}
		}
	}
	listen() {
		const {canvas} = this;

		canvas.addEventListener('pointermove', (e) => {
			const node = this.view ? this.nodeAt(e.offsetX, e.offsetY) : NONE;

			if (node !== this.hover) {
				this.hover = node;
				this.draw();
			}
			this.events.onHover(node, e.clientX, e.clientY);
		});
		canvas.addEventListener('pointerleave', () => {
			this.hover = NONE;
			this.draw();
			this.events.onHover(NONE);
		});
		canvas.addEventListener('click', (e) => {
			const node = this.nodeAt(e.offsetX, e.offsetY);

			if (node === NONE)
				return;
			this.zoomTo(node);
			this.events.onFocus(node);
		});
		this.pane.addEventListener('scroll', () => this.draw());
		// Whatever made room or took it: the window, a line above, a longer path.
		new ResizeObserver(() => {
			if (this.view && !this.paperRows && (this.pane.clientHeight !== this.tall || this.pane.clientWidth !== this.width))
				this.resize();
		}).observe(this.pane);
	}
}
