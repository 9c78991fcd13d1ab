// SPDX-License-Identifier: Apache-2.0
//
// Part 8: tables of functions, modules and containers, and what a comparison finds new and gone.

const MAX_ROWS = 300;

// The bar is relative to the largest in its column, the number to all samples.
function shareCell(value, all, largest) {
	const cell = make('td', undefined, 'number share');
	const bar = make('i');

	bar.style.width = `calc((100% - 12px) * ${(largest ? value / largest : 0).toFixed(3)})`;
	cell.append(bar, make('span', `${count(value)}  ${percent(value, all).padStart(6)}`));
	return cell;
}
function changeCell(change) {
	return make('td', points(change), `number ${change > 0.0005 ? 'more' : change < -0.0005 ? 'less' : 'muted'}`);
}
const columnWords = {
	self: ['Self', 'samples taken in the function itself'],
	total: ['Total', 'samples with the function anywhere in the stack'],
	change: ['Change', 'percentage points of all samples, of the newer capture against the older'],
	name: ['Name', ''],
	module: ['Module', ''],
};

// rows: {name, module, self, total, change, symbol}. An element of its own, not yet in the page.
function makeTable(columns, rows, all, onSort, onRow) {
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
				line.append(shareCell(row[column], all, largest[column]));
			} else if (column === 'change') {
				line.append(changeCell(row.change));
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

// sums: {self, total} by key for each capture; totals: all samples of each.
function rowOf(key, sums, totals) {
	const before = comparing ? sums[1].self[key] / (totals[1] || 1) : 0;

	return {self: sums[0].self[key], total: sums[0].total[key], change: sums[0].self[key] / (totals[0] || 1) - before};
}
function functionRows(sums, totals) {
	const rows = [];

	for (let symbol = 0; symbol < symbols.name.length; symbol++) {
		const there = sums.some((s) => s.total[symbol]);

		if (there && symbols.kind[symbol] !== PROCESS && symbols.kind[symbol] !== GROUP)
			rows.push({symbol, name: symbols.name[symbol], module: symbols.module[symbol], ...rowOf(symbol, sums, totals)});
	}
	return rows;
}
function moduleRows(sums, totals) {
	return moduleNames.map((name, key) => ({name, module: '', ...rowOf(key, sums, totals)}))
		.filter((row, key) => row.name && sums.some((s) => s.total[key]));
}
function containerRows(sums, totals) {
	const names = new Set(sums.flatMap((s) => [...s.keys()]));

	return [...names].map((name) => {
		const value = sums[0].get(name) || 0;
		const before = comparing ? (sums[1].get(name) || 0) / (totals[1] || 1) : 0;

		return {name, module: '', self: value, total: value, change: value / (totals[0] || 1) - before};
	});
}
// What is new, what is gone, and what changed most of the rest.
function makeChanges(sums, totals, onRow) {
	const rows = functionRows(sums, totals);
	const page = document.createDocumentFragment();
	const parts = [
		['New: only in the newer capture', rows.filter((r) => !sums[1].total[r.symbol])],
		['Gone: only in the older capture', rows.filter((r) => !sums[0].total[r.symbol])],
		['In both', rows.filter((r) => sums[0].total[r.symbol] && sums[1].total[r.symbol])],
	];

	for (const [title, list] of parts) {
		const table = make('table');
		const body = make('tbody');
		const number = (value, all) => make('td', `${count(value)}  ${percent(value, all).padStart(6)}`, 'number');

		list.sort((a, b) => Math.abs(b.change) - Math.abs(a.change) || b.total - a.total);
		for (const row of list.slice(0, 60)) {
			const line = make('tr');
			const cell = make('td', undefined, 'name');

			cell.append(makeButton(row.name, () => onRow(row)));
			line.append(changeCell(row.change), number(sums[1].self[row.symbol], totals[1]), number(row.self, totals[0]), cell,
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
