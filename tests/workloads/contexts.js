// SPDX-License-Identifier: Apache-2.0
// Asynchronous functions that take turns in spans of their own, nested, on the first thread and on a worker. No tracer
// is there: @datadog/pprof alone writes the contexts. Those of in_later got an attribute more while they were in use;
// those of in_ended have ended, and the continuation still has them. Each span is a line: its id, its trace, the
// function that works in it. The directory of the modules is the first argument.
'use strict';
const { writeSync } = require('fs');
const { join } = require('path');
const { Worker, isMainThread } = require('worker_threads');
const modules = process.argv[2];
const { ThreadContext, clearContext, getProcessContextAttributes } = require(join(modules, '@datadog/pprof')).otelThreadCtx;

let n = isMainThread ? 0 : 1 << 24;
const hex = (value, digits) => value.toString(16).padStart(digits, '0');
const bytes = (text) => Uint8Array.from(Buffer.from(text, 'hex'));

/* The library that publishes the keys puts one of its own in front of them. */
function publish() {
  const discovery = require(join(modules, '@datadog/libdatadog-extras')).maybeLoad('process-discovery');
  const said = getProcessContextAttributes(['http.route', 'step']);
  const metadata = new discovery.TracerMetadata('00000000-0000-0000-0000-000000000001', '1', 'host', 'shop', null, null, null, null, {
    attributeKeys: [...said['threadlocal.attribute_key_map']],
    schemaVersion: said['threadlocal.schema_version'],
    extraAttributes: [],
  });
  return discovery.storeMetadata(metadata);
}

function spin() {
  const end = process.cpuUsage().user + 5000;
  while (process.cpuUsage().user < end) for (let i = 0; i < 100000; i++);
}
function in_outer() { spin(); }
function in_inner() { spin(); }
function in_later() { spin(); }
function in_ended() { spin(); }
function in_none() { spin(); }

const turn = () => new Promise((resolve) => setImmediate(resolve));

function span(trace, ...names) {
  const id = hex(++n, 16);
  for (const name of names) writeSync(1, `${id} ${trace} ${name}\n`);
  return new ThreadContext(bytes(trace), bytes(id), 1, [id, '/cart']);
}

async function work(trace) {
  for (;;) {
    const outer = span(trace, 'in_outer', 'in_later');
    await outer.run(async () => {
      in_outer();
      await turn();
      await span(trace, 'in_inner').run(async () => {
        for (let i = 0; i < 3; i++) {
          in_inner();
          await turn();
        }
      });
      in_outer();
      outer.appendAttributes([, , 'x'.repeat(100)]);
      await turn();
      in_later();
      outer.invalidate();
      await turn();
      in_ended();
    });
    const entered = span(trace, 'in_outer');
    entered.enter();
    in_outer();
    await turn();
    clearContext();
    in_none();
    await turn();
  }
}

const kept = isMainThread ? [publish(), new Worker(__filename, { argv: [modules] })] : [];
for (let i = 1; i <= 2; i++) work(hex(2 * kept.length + i, 32));
