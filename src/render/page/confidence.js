// SPDX-License-Identifier: Apache-2.0
//
// Part 5: how certain a share is, and whether two differ by more than chance. util/confidence.c
// explains the methods. A weight is {sum, squares}: the sum of values, and of their squares.

const weightAt = (column, i) => ({sum: column.sum[i], squares: column.squares[i]});
const Z = 1.959963984540054;
const noiseLevel = 0.05;
const normalVariance = 1e6;
const normalN = 1e12;

function unevenness(part, whole) {
	const share = part.sum / whole.sum;
	const rest = whole.sum - part.sum;
	const restSquares = Math.max(whole.squares - part.squares, 0);

	if (part.sum <= 0 || rest <= 0)
		return whole.squares / whole.sum;
	return ((1 - share) * part.squares) / part.sum + (share * restSquares) / rest;
}
// Wilson's 95% interval, as numbers from 0 to 1; null: no sample.
function interval(part, whole) {
	if (!(whole.sum > 0))
		return null;
	const n = whole.sum / unevenness(part, whole);
	const share = Math.min(part.sum / whole.sum, 1);
	const middle = share + (Z * Z) / (2 * n);
	const half = Z * Math.sqrt((share * (1 - share)) / n + (Z * Z) / (4 * n * n));

	return [share > 0 ? Math.max((middle - half) / (1 + (Z * Z) / n), 0) : 0,
		share < 1 ? Math.min((middle + half) / (1 + (Z * Z) / n), 1) : 1];
}

// ---- Two shares ----

const logFactorials = new Float64Array(256);

for (let i = 2; i < logFactorials.length; i++)
	logFactorials[i] = logFactorials[i - 1] + Math.log(i);
// Beyond the table by Stirling's series.
function logFactorial(n) {
	return n < logFactorials.length ? logFactorials[n]
		: n * Math.log(n) - n + Math.log(2 * Math.PI * n) / 2 + 1 / (12 * n) - 1 / (360 * n ** 3);
}
const logChoose = (n, k) => logFactorial(n) - logFactorial(k) - logFactorial(n - k);
const spreadProbability = (k, n) => Math.exp(logChoose(n[0], k[0]) + logChoose(n[1], k[1]) - logChoose(n[0] + n[1], k[0] + k[1]));

function canDiffer(k, n) {
	const part = k[0] + k[1];
	const most = n.map((all) => Math.min(part, all));

	return spreadProbability([most[0], part - most[0]], n) < noiseLevel || spreadProbability([part - most[1], most[1]], n) < noiseLevel;
}
function exactPValue(k, n) {
	const more = k[1] * n[0] > k[0] * n[1] ? 1 : 0;
	let x = k[more];
	let y = k[1 - more];
	let term = spreadProbability(k, n);
	let tail = term / 2;

	while (y > 0 && x < n[more] && term > tail * 1e-16) {
		term *= ((y / (x + 1)) * (n[more] - x)) / (n[1 - more] - y + 1);
		x++;
		y--;
		tail += term;
	}
	return 2 * Math.min(tail, Math.abs(1 - tail));
}
// The complementary error function, to seven digits (Abramowitz and Stegun 7.1.26).
function normalPValue(z) {
	const x = z / Math.SQRT2;
	const t = 1 / (1 + 0.3275911 * x);

	return t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x);
}
// NaN: there are too few samples for any difference to be more than chance.
function pValue(parts, wholes, means = captures.map((c) => c.mean)) {
	const one = {sum: 0, squares: 0};
	const all = {sum: 0, squares: 0};

	if (!(wholes[0].sum > 0) || !(wholes[1].sum > 0))
		return NaN;
	wholes.forEach((whole, i) => {
		one.sum += Math.min(parts[i].sum, whole.sum) / means[i];
		one.squares += parts[i].squares / means[i] ** 2;
		all.sum += whole.sum / means[i];
		all.squares += whole.squares / means[i] ** 2;
	});
	const f = unevenness(one, all);
	const k = parts.map((part, i) => Math.round(Math.min(part.sum, wholes[i].sum) / means[i] / f));
	const n = wholes.map((whole, i) => Math.max(Math.round(whole.sum / means[i] / f), k[i]));
	const sum = n[0] + n[1];
	const part = k[0] + k[1];
	const variance = (((((part * (sum - part)) / sum) * n[0]) / sum) * n[1]) / (sum - 1);

	if (sum < 2)
		return NaN;
	if (variance > normalVariance || (sum > normalN && variance > 0))
		return normalPValue(Math.abs(k[1] - (part * n[1]) / sum) / Math.sqrt(variance));
	return canDiffer(k, n) ? exactPValue(k, n) : NaN;
}

// ---- Many of them ----

// 1: the change is noise, by Benjamini and Hochberg's method; null: unknown. columns: weights by
// row, for each capture; wholes: the totals of these.
function findNoise(columns, wholes) {
	if (!comparing || !counted || byAmount)
		return null;
	const p = Float64Array.from(columns[0].sum, (_, i) => pValue(columns.map((column) => weightAt(column, i)), wholes));
	const tested = p.filter((x) => !Number.isNaN(x)).sort();
	let limit = 0;

	tested.forEach((x, i) => {
		if ((x * tested.length) / (i + 1) < noiseLevel)
			limit = x;
	});
	return Uint8Array.from(p, (x) => (limit > 0 && x <= limit ? 0 : 1));
}
// "3.1–4.2%"; '': unknown.
function intervalText(part, whole) {
	const bounds = counted ? interval(part, whole) : null;
	const digits = bounds && bounds[1] < 0.01 ? 2 : 1;

	return bounds ? `${(100 * bounds[0]).toFixed(digits)}–${(100 * bounds[1]).toFixed(digits)}%` : '';
}
