// SPDX-License-Identifier: Apache-2.0
// Asynchronous functions that take turns in one thread, each in spans of its own, nested, by the writer of thread
// contexts that Datadog's tracer for Node.js has. Each span is a line: its id, its trace, the function that works in
// it. The module is the first argument.
'use strict';
const { ThreadContext, clearContext } = require(process.argv[2]).otelThreadCtx;
const { randomBytes } = require('crypto');
const { writeSync } = require('fs');

function spin() {
  const end = process.cpuUsage().user + 5000;
  while (process.cpuUsage().user < end) for (let i = 0; i < 100000; i++);
}
function in_outer() { spin(); }
function in_inner() { spin(); }
function in_none() { spin(); }

function begin(name, trace) {
  const id = randomBytes(8);
  writeSync(1, `${id.toString('hex')} ${trace.toString('hex')} ${name}\n`);
  return new ThreadContext(trace, id, 1, ['/' + name]);
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function work() {
  for (;;) {
    const trace = randomBytes(16);
    await begin('in_outer', trace).run(async () => {
      in_outer();
      await turn();
      await begin('in_inner', trace).run(async () => {
        for (let i = 0; i < 3; i++) {
          in_inner();
          await turn();
        }
      });
      in_outer();
    });
    in_none();
    await turn();
  }
}

for (let i = 0; i < 4; i++) work();
