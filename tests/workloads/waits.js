// SPDX-License-Identifier: Apache-2.0
// The main thread waits for a cell of memory that nobody changes.
"use strict";
const cell = new Int32Array(new SharedArrayBuffer(4));

function sleeps() {
	Atomics.wait(cell, 0, 0, 15);
}

for (;;)
	sleeps();
