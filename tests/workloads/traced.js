// SPDX-License-Identifier: Apache-2.0
// Asynchronous functions that take turns in one thread, each in spans of its own, nested, by Datadog's tracer. Each
// span is a line: its id, its trace, the function that works in it. The module is the first argument.
'use strict';
const tracer = require(process.argv[2]).init({ startupLogs: false });
const { writeSync } = require('fs');

function spin() {
  const end = process.cpuUsage().user + 5000;
  while (process.cpuUsage().user < end) for (let i = 0; i < 100000; i++);
}
function in_outer() { spin(); }
function in_inner() { spin(); }
function in_none() { spin(); }

function within(name, work) {
  return tracer.trace(name, (span) => {
    writeSync(1, `${span.context().toSpanId(true)} ${span.context().toTraceId(true)} ${name}\n`);
    return work();
  });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function work() {
  for (;;) {
    await within('in_outer', async () => {
      in_outer();
      await turn();
      await within('in_inner', async () => {
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
