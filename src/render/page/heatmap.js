// SPDX-License-Identifier: Apache-2.0
//
// Part 7: the heat map of the capture's time, after FlameScope: a column is a second (or another
// round time, by the length of the capture), its rows are equal parts of it from the bottom up, and
// the colour is the number of samples. Dragging selects from one cell to another.

const HEAT_ROWS = 10;
const HEAT_CELL = 7; // pixels high

class HeatMap {
	constructor(element, onRange) {
		const c = captures[0];
		const length = Math.max(c.meta.durationNs / 1000, c.last + 1);

		this.canvas = element;
		this.pen = element.getContext('2d');
		this.onRange = onRange;
		this.from = this.to = NONE; // cells
		this.column = [1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 3e7, 6e7, 6e8, 3.6e9].find((t) => length / t <= 120) || length / 120;
		this.cell = this.column / HEAT_ROWS;
		this.columns = Math.max(1, Math.ceil(length / this.column));
		this.listen();
	}
	// Counts what the filter lets through, whatever the range.
	count(samples) {
		const c = captures[0];

		this.cells = new Float64Array(this.columns * HEAT_ROWS);
		for (const i of samples) {
			const cell = Math.floor(c.samples.time[i] / this.cell);

			if (cell >= 0 && cell < this.cells.length)
				this.cells[cell] += c.samples.value[i];
		}
		this.most = this.cells.reduce((m, n) => Math.max(m, n), 0);
		this.draw();
	}
	get words() {
		const span = (us) => (us >= 6e7 ? `${us / 6e7} min` : us >= 1e6 ? `${us / 1e6} s` : `${us / 1e3} ms`);

		return `Each column is ${span(this.column)}, each of its rows ${span(this.cell)} from the bottom up; the darkest or brightest cell has ${count(this.most)} ${unit}.`;
	}
	draw() {
		const {pen, canvas} = this;
		const ratio = window.devicePixelRatio || 1;
		const width = canvas.clientWidth;
		const height = HEAT_ROWS * HEAT_CELL;
		const range = state.range ? state.range.map((t) => t / this.cell) : null;

		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.cellWidth = width / this.columns;
		for (let i = 0; i < this.cells.length; i++) {
			const x = Math.floor(i / HEAT_ROWS) * this.cellWidth;
			const y = height - ((i % HEAT_ROWS) + 1) * HEAT_CELL;
			const inside = !range || (i + 0.5 >= range[0] && i + 0.5 < range[1]);

			pen.globalAlpha = inside ? 1 : 0.28;
			pen.fillStyle = heatColour(this.most ? this.cells[i] / this.most : 0);
			pen.fillRect(x, y, Math.max(this.cellWidth - 0.7, 0.5), HEAT_CELL - 0.7);
			if (range && inside) {
				pen.fillStyle = theme.accent;
				pen.globalAlpha = 0.16;
				pen.fillRect(x, y, this.cellWidth, HEAT_CELL);
			}
		}
		pen.globalAlpha = 1;
	}
	cellAt(e) {
		const column = Math.floor(Math.max(0, Math.min(e.offsetX, this.canvas.clientWidth - 1)) / this.cellWidth);
		const row = HEAT_ROWS - 1 - Math.floor(Math.max(0, Math.min(e.offsetY, HEAT_ROWS * HEAT_CELL - 1)) / HEAT_CELL);

		return Math.min(column, this.columns - 1) * HEAT_ROWS + row;
	}
	choose(from, to) {
		this.onRange([Math.min(from, to) * this.cell, (Math.max(from, to) + 1) * this.cell]);
	}
	move(key, extend) {
		const last = this.columns - 1;
		const step = key === 'ArrowRight' ? 1 : -1;
		const [from, to] = state.range ? [Math.floor(state.range[0] / this.column), Math.ceil(state.range[1] / this.column) - 1]
			: step > 0 ? [-1, -1] : [last + 1, last + 1];
		const end = Math.max(0, Math.min(last, to + step));
		const begin = extend ? Math.min(from, end) : Math.max(0, Math.min(last, from + step));

		this.choose(Math.max(0, begin) * HEAT_ROWS, (extend ? end : begin) * HEAT_ROWS + HEAT_ROWS - 1);
	}
	listen() {
		const {canvas} = this;

		canvas.addEventListener('pointerdown', (e) => {
			canvas.setPointerCapture(e.pointerId);
			this.from = this.to = this.cellAt(e);
		});
		canvas.addEventListener('pointermove', (e) => {
			const cell = this.cellAt(e);

			if (this.from === NONE || cell === this.to)
				return;
			this.to = cell;
			this.choose(this.from, cell);
		});
		canvas.addEventListener('pointerup', () => {
			// A click without a drag is the whole column.
			const column = Math.floor(this.from / HEAT_ROWS) * HEAT_ROWS;

			if (this.from !== NONE && this.from === this.to)
				this.choose(column, column + HEAT_ROWS - 1);
			this.from = this.to = NONE;
		});
	}
}
