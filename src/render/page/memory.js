// SPDX-License-Identifier: Apache-2.0
//
// Part 10: what processes had in memory, as lines below the heat map, on its scale of time. Each
// process was looked at now and then: from one look to the next nothing else is known.

const MEMORY_LINES = 6;   // processes, the largest
const MEMORY_HEIGHT = 64; // pixels
const memoryColours = [['#2563eb', '#7aa7ff'], ['#c2410c', '#ff9d66'], ['#15803d', '#6fcf97'], ['#9333ea', '#cc9cff'],
	['#b91c5c', '#ff8fb8'], ['#0e7490', '#67d3e8']]; // light, dark

// [name, pid, most, [[microseconds, bytes], ...]] of each process; bytes null: not known from then on.
const residents = comparing ? [] : inFile[0].memory || [];

// [microseconds, processes that the kernel killed for want of memory since the look before]
const kills = comparing ? [] : inFile[0].kills || [];

// [microseconds, name, pid, container or unit, 1: the kernel said so; 0: it ended then]
const victims = comparing ? [] : inFile[0].victims || [];

function victimWords([, name, pid, owner]) {
	return `${name} (${pid}${owner ? ', ' + owner : ''})`;
}

// null: not known. 0: it has ended.
function residentAt([, , , points], us) {
	const after = points.findIndex(([time]) => time > us);
	const at = after < 0 ? points.length - 1 : after - 1;

	return at < 0 ? null : points[at][1];
}

class MemoryLines {
	constructor(heat) {
		this.heat = heat;
		this.shown = residents.slice(0, MEMORY_LINES);
		this.most = this.shown.length && this.shown[0][2] || 1;
		this.box = make('div', undefined, 'memory');
		this.canvas = make('canvas');
		this.canvas.id = 'memory';
		this.canvas.setAttribute('role', 'img');
		this.pen = this.canvas.getContext('2d');
		this.words = make('p');
		this.box.append(this.canvas, this.words);
		byId('time').append(this.box);
		this.canvas.addEventListener('pointermove', (e) => this.showTip(e));
		this.canvas.addEventListener('pointerleave', () => placeTip(null));
	}
	get width() {
		return this.heat.columns * this.heat.cellWidth;
	}
	colour(i) {
		return memoryColours[i][isDark() ? 1 : 0];
	}
	x(us) {
		return (us / this.heat.column) * this.heat.cellWidth;
	}
	y(size) {
		return MEMORY_HEIGHT - 1 - ((MEMORY_HEIGHT - 3) * size) / this.most;
	}
	draw() {
		const {pen, canvas} = this;
		const ratio = window.devicePixelRatio || 1;

		canvas.width = Math.round(this.width * ratio);
		canvas.height = Math.round(MEMORY_HEIGHT * ratio);
		canvas.style.width = this.width + 'px';
		canvas.style.height = MEMORY_HEIGHT + 'px';
		pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		pen.fillStyle = theme.line;
		pen.fillRect(0, MEMORY_HEIGHT - 1, this.x(this.heat.length), 1);
		for (let i = this.shown.length - 1; i >= 0; i--)
			this.drawLine(i);
		this.drawKills();
		this.drawRange();
		this.showWords();
	}
	drawKills() {
		const {pen} = this;

		pen.fillStyle = this.killColour;
		for (const [time] of kills)
			pen.fillRect(this.x(time) - 1, 0, 2, MEMORY_HEIGHT);
	}
	get killColour() {
		return isDark() ? '#ff5c5c' : '#d00000';
	}
	drawLine(i) {
		const {pen} = this;
		let last = null;

		pen.strokeStyle = this.colour(i);
		pen.lineWidth = 1.5;
		pen.beginPath();
		for (const [time, size] of this.shown[i][3]) {
			if (last)
				pen.lineTo(this.x(time), this.y(last));
			if (size !== null && last)
				pen.lineTo(this.x(time), this.y(size));
			else if (size)
				pen.moveTo(this.x(time), this.y(size));
			last = size;
		}
		if (last)
			pen.lineTo(this.x(this.heat.length), this.y(last));
		pen.stroke();
	}
	// Outside of the selected time the lines are as pale as the cells above.
	drawRange() {
		const {range} = this.heat;

		if (!range)
			return;
		this.pen.globalAlpha = 0.78;
		this.pen.fillStyle = theme.panel;
		this.pen.fillRect(0, 0, this.x(range[0]), MEMORY_HEIGHT);
		this.pen.fillRect(this.x(range[1]), 0, this.width, MEMORY_HEIGHT);
		this.pen.globalAlpha = 1;
	}
	showWords() {
		const more = residents.length - this.shown.length;
		const items = this.shown.map(([name, pid, most], i) => {
			const item = make('span');
			const box = make('i');

			box.style.backgroundColor = this.colour(i);
			item.append(box, `${name} (${pid}): ${bytes(most)}`);
			return item;
		});
		const words = `Resident memory of the largest processes, once a second; the top is ${bytes(this.most)}. The largest value of each: `;

		this.words.replaceChildren(this.killWords(), make('span', words, 'muted'), ...items, more > 0 ? make('span', `and ${count(more)} more`, 'muted') : '');
		this.canvas.setAttribute('aria-label', this.words.textContent);
	}
	killWords() {
		const all = kills.reduce((sum, [, n]) => sum + n, 0);
		const words = make('b', all ? `${count(all)} ${all === 1 ? 'process was' : 'processes were'} killed on this host because memory ran out, seen at ${kills.map(([time]) => (time / 1e6).toFixed(1) + ' s').join(', ')}. ` : '');

		const sure = victims.filter(([, , , , certain]) => certain);
		const maybe = victims.filter(([, , , , certain]) => !certain);

		if (sure.length)
			words.append(`By the kernel's log: ${sure.map(victimWords).join(', ')}. `);
		if (maybe.length)
			words.append(`It is unknown which ones. These ended at that time: ${maybe.map(victimWords).join(', ')}. `);
		words.style.color = this.killColour;
		return words;
	}
	showTip(e) {
		const us = (e.offsetX / this.heat.cellWidth) * this.heat.column;
		const lines = this.shown.map((process) => {
			const size = residentAt(process, us);

			return size ? make('div', `${process[0]} (${process[1]}): ${bytes(size)}`) : null;
		}).filter((line) => line);

		placeTip([make('div', `at ${(us / 1e6).toFixed(2)} s`, 'muted'), ...lines], e.clientX, e.clientY);
	}
}
