// SPDX-License-Identifier: Apache-2.0
//
// Part 11: tables of functions, modules and containers, and of new and gone ones in a comparison.

const MAX_ROWS = 300;

// The bar is relative to the largest in its column, the number to all samples.
function shareCell(weight, whole, largest) {
	const cell = make('td', undefined, 'number share');
	const bar = make('i');
	const sure = intervalText(weight, whole);

	bar.style.width = `calc((100% - 12px) * ${(largest ? weight.sum / largest : 0).toFixed(3)})`;
	cell.append(bar, make('span', `${valueText(weight.sum)}  ${percent(weight.sum, whole.sum).padStart(6)}`));
	if (sure)
		cell.title = `of ${sampleWords(whole)}, 95% interval ${sure}`;
	return cell;
}
// Grey and with a ~ if it is noise.
function changeCell({change, noise}) {
	const cell = make('td', changeText(change) + (noise && change ? ' ~' : '\u00a0\u00a0'),
			  `number ${noise ? 'muted' : change > 0.0005 ? 'more' : change < -0.0005 ? 'less' : 'muted'}`);

	if (noise && change)
		cell.title = 'within noise: shares of so few samples differ as much by chance';
	return cell;
}
const columnWords = {
	self: ['Self', 'samples taken in the function itself'],
	total: ['Total', 'samples with the function anywhere in the stack'],
	change: ['Change', byAmount ? 'what is in use, newer capture minus older' : 'percentage points of all samples, newer capture minus older'],
	name: ['Name', ''],
	module: ['Module', ''],
};

// rows: {name, module, self, total, change, symbol ...}; whole: their weight. Returns an element
// that is not yet in the page.
function makeTable(columns, rows, whole, onSort, onRow) {
	const table = make('table');
	const head = make('tr');
	const body = make('tbody');
	const largest = {self: 0, total: 0};
	const orders = {
		self: (a, b) => b.self - a.self || b.total - a.total,
		total: (a, b) => b.total - a.total || b.self - a.self,
		change: (a, b) => Math.abs(b.change) - Math.abs(a.change),
		name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
		module: (a, b) => (a.module < b.module ? -1 : a.module > b.module ? 1 : b.self - a.self),
	};

	for (const row of rows) {
		largest.self = Math.max(largest.self, row.self);
		largest.total = Math.max(largest.total, row.total);
	}
	rows.sort(orders[columns.includes(state.sort) ? state.sort : 'self']);
	for (const column of columns) {
		const cell = make('th', undefined, ['name', 'module'].includes(column) ? '' : 'number');
		const button = makeButton(columnWords[column][0], () => onSort(column), columnWords[column][1]);

		cell.setAttribute('aria-sort', state.sort === column ? (['name', 'module'].includes(column) ? 'ascending' : 'descending') : 'none');
		button.dataset.sort = column;
		cell.append(button);
		head.append(cell);
	}
	for (const row of rows.slice(0, MAX_ROWS)) {
		const line = make('tr');

		for (const column of columns) {
			if (column === 'self' || column === 'total') {
				line.append(shareCell(row.weights[column], whole, largest[column]));
			} else if (column === 'change') {
				line.append(changeCell(row));
			} else if (column === 'module') {
				line.append(make('td', row.module, 'muted'));
			} else {
				const cell = make('td', undefined, 'name');

				cell.append(makeButton(row.name, () => onRow(row)));
				line.append(cell);
			}
		}
		body.append(line);
	}
	table.append(make('thead'), body);
	table.tHead.append(head);
	return table;
}
function tableNote(shown, all, what) {
	const note = shown < all ? `${count(shown)} of ${count(all)} ${what} match the search` : `${count(all)} ${what}`;

	return make('p', shown > MAX_ROWS ? `${note}; the first ${MAX_ROWS} are listed` : note, 'note muted');
}

// sums: from weighByKey(), for each capture; wholes: all samples of each. noise: by key.
function rowOf(key, sums, wholes, noise) {
	const [after, before] = sums.map(({self}, i) => self.sum[key] / wholeOf(wholes[i].sum));

	return {self: sums[0].self.sum[key], total: sums[0].total.sum[key], change: after - (before || 0), noise: noise ? noise[key] : 0,
		weights: {self: weightAt(sums[0].self, key), total: weightAt(sums[0].total, key)}};
}
const noiseOfSelf = (sums, wholes) => findNoise(sums.map(({self}) => self), wholes);
const isThere = (sums, key) => sums.some(({total}) => total.sum[key]);

function functionRows(sums, wholes) {
	const noise = noiseOfSelf(sums, wholes);
	const rows = [];

	for (let symbol = 0; symbol < symbols.name.length; symbol++) {
		if (isThere(sums, symbol) && symbols.kind[symbol] !== PROCESS && symbols.kind[symbol] !== GROUP)
			rows.push({symbol, name: symbols.name[symbol], module: symbols.module[symbol], ...rowOf(symbol, sums, wholes, noise)});
	}
	return rows;
}
function namedRows(names, sums, wholes) {
	const noise = noiseOfSelf(sums, wholes);

	return names.map((name, key) => ({name, module: '', ...rowOf(key, sums, wholes, noise)}))
		.filter((row, key) => row.name && isThere(sums, key));
}
const moduleRows = (sums, wholes) => namedRows(moduleNames, sums, wholes);
const containerRows = ({names, sums}, wholes) => namedRows(names, sums, wholes);

// The locks of the whole capture: which, how often and how long they were waited for, and by whom.
function makeLocks(locks, onRow) {
	const table = make('table');
	const head = make('tr');
	const body = make('tbody');

	for (const [text, className] of [['Lock', ''], ['Waits', 'number'], ['Time', 'number'], ['Longest', 'number'], ['Who waited', ''], ['Who released', '']])
		head.append(make('th', text, className));
	for (const [name, waits, , time, longest, waiter, releaser] of locks.slice(0, MAX_ROWS)) {
		const line = make('tr');
		const cell = make('td', undefined, 'name');

		cell.append(makeButton(name, () => onRow(name)));
		line.append(cell, make('td', count(waits), 'number'), make('td', time, 'number'), make('td', longest, 'number'),
			    make('td', waiter), make('td', releaser));
		body.append(line);
	}
	table.append(make('thead'), body);
	table.tHead.append(head);
	return table;
}

// New and gone functions, and those that changed most.
function makeChanges(sums, wholes, onRow) {
	const rows = functionRows(sums, wholes);
	const there = (number, row) => sums[number].total.sum[row.symbol] > 0;
	const page = document.createDocumentFragment();
	const parts = [
		['New: only in the newer capture', rows.filter((r) => !there(1, r))],
		['Gone: only in the older capture', rows.filter((r) => !there(0, r))],
		['In both', rows.filter((r) => there(0, r) && there(1, r))],
	];

	for (const [title, list] of parts) {
		const table = make('table');
		const body = make('tbody');
		const number = (value, all) => make('td', `${valueText(value)}  ${percent(value, all).padStart(6)}`, 'number');

		list.sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || b.total - a.total);
		for (const row of list.slice(0, 60)) {
			const line = make('tr');
			const cell = make('td', undefined, 'name');

			cell.append(makeButton(row.name, () => onRow(row)));
			line.append(changeCell(row), number(sums[1].self.sum[row.symbol], wholes[1].sum), number(row.self, wholes[0].sum), cell,
				    make('td', row.module, 'muted'));
			body.append(line);
		}
		const head = make('tr');

		for (const [text, className] of [['Change of self', 'number'], ['Self before', 'number'], ['Self after', 'number'], ['Function', ''], ['Module', '']])
			head.append(make('th', text, className));
		table.append(make('thead'), body);
		table.tHead.append(head);
		page.append(make('h2', `${title} (${count(list.length)})`), table);
	}
	return page;
}
