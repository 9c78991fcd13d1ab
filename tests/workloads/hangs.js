// SPDX-License-Identifier: Apache-2.0
// Hangs in a function, or (argument idle) waits for events in none. It says in which functions, from the outermost on.
"use strict";

function hangs() {
	process.stdout.write("outer;middle;hangs\n");
	Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

function middle() {
	if (process.argv[2] === "idle")
		setTimeout(hangs, 1e8);
	else
		hangs();
}

function outer() {
	middle();
}

outer();
