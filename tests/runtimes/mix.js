// SPDX-License-Identifier: Apache-2.0
// Functions that call each other and make no objects, so that a recording of their stacks holds together.
'use strict';
let sum = 0;

function work(n) {
	let s = sum;
	for (let i = 0; i < n; i += 40) {
		s = (s * 31 + i) & 0xfffff;
		// Too much to be inlined.
		s ^= s >> 2; s += 1 & i;
		s ^= s >> 3; s += 2 & i;
		s ^= s >> 4; s += 3 & i;
		s ^= s >> 5; s += 4 & i;
		s ^= s >> 6; s += 5 & i;
		s ^= s >> 7; s += 6 & i;
		s ^= s >> 1; s += 7 & i;
		s ^= s >> 2; s += 8 & i;
		s ^= s >> 3; s += 9 & i;
		s ^= s >> 4; s += 10 & i;
		s ^= s >> 5; s += 11 & i;
		s ^= s >> 6; s += 12 & i;
		s ^= s >> 7; s += 13 & i;
		s ^= s >> 1; s += 14 & i;
		s ^= s >> 2; s += 15 & i;
		s ^= s >> 3; s += 16 & i;
		s ^= s >> 4; s += 17 & i;
		s ^= s >> 5; s += 18 & i;
		s ^= s >> 6; s += 19 & i;
		s ^= s >> 7; s += 20 & i;
		s ^= s >> 1; s += 21 & i;
		s ^= s >> 2; s += 22 & i;
		s ^= s >> 3; s += 23 & i;
		s ^= s >> 4; s += 24 & i;
		s ^= s >> 5; s += 25 & i;
		s ^= s >> 6; s += 26 & i;
		s ^= s >> 7; s += 27 & i;
		s ^= s >> 1; s += 28 & i;
		s ^= s >> 2; s += 29 & i;
		s ^= s >> 3; s += 30 & i;
		s ^= s >> 4; s += 31 & i;
		s ^= s >> 5; s += 32 & i;
		s ^= s >> 6; s += 33 & i;
		s ^= s >> 7; s += 34 & i;
		s ^= s >> 1; s += 35 & i;
		s ^= s >> 2; s += 36 & i;
		s ^= s >> 3; s += 37 & i;
		s ^= s >> 4; s += 38 & i;
		s ^= s >> 5; s += 39 & i;
		s ^= s >> 6; s += 40 & i;
	}
	sum = s;
	return s;
}
function small(n) {
	return work(n) + 1;
}
function caller(n) {
	const a = small(n);
	return a & 7;
}
function deep(n) {
	return n > 0 ? deep(n - 1) + 1 : caller(20000);
}
function once() {
	return deep(5) + work(30000);
}
class Shape {
	area(n) {
		return work(n) + caller(n);
	}
}
const shape = new Shape();
for (;;) {
	once();
	shape.area(10000);
	[1, 2].forEach(caller);
}
