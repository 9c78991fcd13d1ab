// SPDX-License-Identifier: Apache-2.0
// Small functions that call each other: small_main, small_outer, small_inner, small_deep four times.

function small_deep(n) {
	return n ? small_deep(n - 1) + 1 : 1;
}
function small_inner() {
	return small_deep(3) + 1;
}
function small_outer() {
	return small_inner() + 1;
}
function small_main() {
	let sum = 0;

	for (let i = 0; i < 1000; i++)
		sum += small_outer();
	return sum;
}
for (;;)
	small_main();
