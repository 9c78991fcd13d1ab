// SPDX-License-Identifier: Apache-2.0
//
// Part 9: the heat map of a capture's time, after FlameScope: a column is a second (of long captures
// another round time, as many as there is room for), its cells are equal parts of it from the bottom
// up, and the colour is the number of samples. Dragging selects from one cell to another.

const HEAT_ROWS = 20;
const HEAT_CELL = 4;    // pixels high
const HEAT_MIN = 6;     // pixels wide, at least and at most
const HEAT_MAX = 26;
const HEAT_AXIS = 15;   // pixels high, below the cells
const HEAT_PAPER = 700; // pixels wide, on paper
const heatColumns = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400, 604800]; // seconds

function spanWords(us) {
	return us >= 6e7 ? `${us / 6e7} min` : us >= 1e6 ? `${us / 1e6} s` : `${us / 1e3} ms`;
}

class HeatMap {
	// number: of the capture. onRange([from, to) in microseconds, or null)
	constructor(number, name, onRange) {
		const c = captures[number];

		this.number = number;
		this.length = Math.max(c.meta.durationNs / 1000, c.last + 1);
		this.onRange = onRange;
		this.from = this.to = NONE; // cells, while dragging
		this.paper = false;
		this.below = null; // is drawn on the same scale of time
		this.build(name);
		this.listen();
	}
	build(name) {
		this.box = make('div', undefined, 'heat');
		this.canvas = make('canvas');
		this.canvas.id = name ? `heat-${name}` : 'heat';
		this.canvas.tabIndex = 0;
		this.canvas.setAttribute('role', 'application');
		this.canvas.setAttribute('aria-label', `Heat map of the time of the capture ${name}: drag to select; left and right arrow select a column, up and down a cell, Shift extends the range`);
		this.pen = this.canvas.getContext('2d');
		this.words = make('span', undefined, 'muted');
		this.scale = make('span', undefined, 'scale');
		this.rangeWords = make('b');
		this.rangeWords.setAttribute('aria-live', 'polite');
		this.clear = makeButton('Whole capture', () => this.onRange(null), 'select the whole capture (r)');
		const text = make('p');

		text.append(name ? make('b', name + ' ') : '', this.words, ' ', this.scale, ' ', this.rangeWords, ' ', this.clear);
		this.box.append(this.canvas, text);
		byId('time').append(this.box);
	}
	get range() {
		return state.ranges[this.number];
	}
	// Counts the samples that pass the filter, in any range.
	count(samples) {
		const {time, value} = captures[this.number].samples;

		this.samples = samples;
		this.measure();
		this.cells = new Float64Array(this.columns * HEAT_ROWS);
		for (const i of samples) {
			const cell = Math.floor(time[i] / this.cell);

			if (cell >= 0 && cell < this.cells.length)
				this.cells[cell] += value[i];
		}
		this.most = this.cells.reduce((m, n) => Math.max(m, n), 0);
		this.draw();
	}
	// The width decides how many seconds a column has.
	measure() {
		const room = this.paper ? HEAT_PAPER : this.box.clientWidth || 1200;
		const column = 1e6 * (heatColumns.find((t) => (this.length / (t * 1e6)) * HEAT_MIN <= room) || this.length / 1e6);
		const changed = column !== this.column;

		this.column = column;
		this.cell = column / HEAT_ROWS;
		this.columns = Math.max(1, Math.ceil(this.length / column));
		this.cellWidth = Math.min(HEAT_MAX, room / this.columns);
		return changed;
	}
	resize() {
		if (this.measure())
			this.count(this.samples);
		else
			this.draw();
	}
	showWords() {
		const {range} = this;

		this.words.textContent = `A column is ${spanWords(this.column)}, a cell ${spanWords(this.cell)}, from the bottom up:`;
		this.scale.replaceChildren('0', ...[0, 0.1, 0.3, 0.6, 1].map((share) => {
			const box = make('i');

			box.style.backgroundColor = heatColour(share);
			return box;
		}), `${valueWithUnit(this.most)}.`);
		this.clear.hidden = !range;
		this.rangeWords.textContent = range ? `${(range[0] / 1e6).toFixed(2)} to ${(range[1] / 1e6).toFixed(2)} s: ${valueWithUnit(wholes[this.number].sum)}` : '';
	}
	draw() {
		const {pen, canvas} = this;
		const ratio = window.devicePixelRatio || 1;
		const width = this.columns * this.cellWidth;
		const height = HEAT_ROWS * HEAT_CELL;
		const range = this.range ? this.range.map((t) => t / this.cell) : null;
		const last = this.length / this.cell;

		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round((height + HEAT_AXIS) * ratio);
		canvas.style.width = width + 'px';
		canvas.style.height = height + HEAT_AXIS + 'px';
		pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		for (let i = 0; i < this.cells.length && i < last; i++) {
			const x = Math.floor(i / HEAT_ROWS) * this.cellWidth;
			const y = height - ((i % HEAT_ROWS) + 1) * HEAT_CELL;
			const inside = range && i + 0.5 >= range[0] && i + 0.5 < range[1];

			pen.globalAlpha = range && !inside ? 0.22 : 1;
			pen.fillStyle = heatColour(this.most ? this.cells[i] / this.most : 0);
			pen.fillRect(x, y, Math.max(this.cellWidth - 0.7, 0.5), HEAT_CELL - 0.7);
		}
		pen.globalAlpha = 1;
		this.drawAxis(height);
		this.showWords();
		if (this.below)
			this.below.draw();
	}
	drawAxis(height) {
		const {pen} = this;
		const second = this.column / 1e6;
		const step = [1, 2, 5, 10, 20, 30, 60, 120].find((n) => n * this.cellWidth >= 56) || 120;

		pen.fillStyle = theme.muted;
		pen.font = `10.5px ${theme.mono}`;
		pen.textBaseline = 'top';
		for (let i = 0; i < this.columns && (!i || (this.columns - i) * this.cellWidth >= 36); i += step) {
			pen.fillRect(i * this.cellWidth, height, 1, 3);
			pen.fillText(`${+(i * second).toFixed(3)} s`, i * this.cellWidth + 3, height + 3);
		}
	}
	cellAt(e) {
		const column = Math.floor(Math.max(0, e.offsetX) / this.cellWidth);
		const row = HEAT_ROWS - 1 - Math.floor(Math.max(0, Math.min(e.offsetY, HEAT_ROWS * HEAT_CELL - 1)) / HEAT_CELL);

		return Math.min(Math.max(0, column), this.columns - 1) * HEAT_ROWS + row;
	}
	choose(from, to) {
		this.onRange([Math.min(from, to) * this.cell, (Math.max(from, to) + 1) * this.cell]);
	}
	// Left and right select the next column, up and down the next cell; extended, the range grows that way.
	move(key, extend) {
		const end = this.columns * HEAT_ROWS - 1;
		const forward = key === 'ArrowRight' || key === 'ArrowUp';
		const whole = key === 'ArrowRight' || key === 'ArrowLeft';
		const step = (whole ? HEAT_ROWS : 1) * (forward ? 1 : -1);
		const clamp = (cell) => Math.max(0, Math.min(end, cell));
		const bottom = (cell) => cell - (cell % HEAT_ROWS);
		const chosen = this.range && this.range.map((t, i) => clamp(Math.round(t / this.cell) - i));

		if (!chosen) {
			const first = forward ? 0 : whole ? bottom(end) : end;

			this.choose(first, whole ? first + HEAT_ROWS - 1 : first);
			return;
		}
		if (extend) {
			this.choose(...(forward ? [chosen[0], clamp(chosen[1] + step)] : [clamp(chosen[0] + step), chosen[1]]));
			return;
		}
		if (whole) {
			const from = bottom(clamp((forward ? chosen[1] : chosen[0]) + step));

			this.choose(from, from + HEAT_ROWS - 1);
			return;
		}
		const cell = clamp((forward ? chosen[1] : chosen[0]) + step);

		this.choose(cell, cell);
	}
	showTip(e) {
		const cell = this.cellAt(e);
		const [from, to] = [cell, cell + 1].map((n) => ((n * this.cell) / 1e6).toFixed(2));

		placeTip([make('div', `${from} to ${to} s: ${valueWithUnit(this.cells[cell])}`)], e.clientX, e.clientY);
	}
	listen() {
		const {canvas} = this;

		canvas.addEventListener('pointerdown', (e) => {
			canvas.setPointerCapture(e.pointerId);
			this.from = this.to = this.cellAt(e);
		});
		canvas.addEventListener('pointermove', (e) => {
			const cell = this.cellAt(e);

			this.showTip(e);
			if (this.from === NONE || cell === this.to)
				return;
			this.to = cell;
			this.choose(this.from, cell);
		});
		canvas.addEventListener('pointerleave', () => placeTip(null));
		canvas.addEventListener('pointerup', () => {
			// A click without a drag selects the whole column.
			const column = Math.floor(this.from / HEAT_ROWS) * HEAT_ROWS;

			if (this.from !== NONE && this.from === this.to)
				this.choose(column, column + HEAT_ROWS - 1);
			this.from = this.to = NONE;
		});
	}
}
