// SPDX-License-Identifier: Apache-2.0
// V8's compiled code and builtins in the middle of native stacks.
'use strict';
const crypto = require('crypto');
let sink = 0;
function inner(n) {
	const a = [];
	for (let i = 0; i < 200; i++)
		a.push(((i * 7919) % 200) + n);
	a.sort((x, y) => x - y);
	return JSON.stringify(a).replace(/\d+/g, (d) => d.length).length;
}
function outer(n) {
	sink += inner(n);
	sink += crypto.createHash('sha256').update('x'.repeat(5000)).digest()[0];
}
for (let i = 0; i < 5000000; i++)
	outer(i);
