// SPDX-License-Identifier: Apache-2.0
// Calls that V8 compiles and names in /tmp/perf-PID.map.
'use strict';
function jsLeaf(n) {
	let x = n;
	for (let i = 0; i < 20000; i++)
		x = (x * 31 + i) | 0;
	return x;
}
function jsMiddle(n) {
	return jsLeaf(n) + 1;
}
function jsOuter(n) {
	let sum = 0;
	for (let i = 0; i < 100; i++)
		sum += jsMiddle(i + n);
	return sum;
}
let total = 0;
for (;;)
	total = (total + jsOuter(total)) | 0;
