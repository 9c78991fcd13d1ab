// SPDX-License-Identifier: Apache-2.0
// speedscope's own importer without its page: node speedscope.js BUNDLE FILE... prints for each file
// its profiles, and of each every frame's name, self and total weight.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [bundle, ...files] = process.argv.slice(2);
let code = fs.readFileSync(bundle, 'utf8');
const name = /importProfileGroupFromText:\(\)=>([\w$]+)/.exec(code)[1];
// Functions are hoisted: the importer is reachable from the first line of the bundle on.
code = code.replace('(()=>{', `(()=>{globalThis.importer=(...a)=>${name}(...a);`);

const nothing = new Proxy(function () {}, { get: (t, k) => (k === Symbol.toPrimitive ? () => '' : nothing), apply: () => nothing,
  construct: () => nothing, set: () => true });
Object.assign(globalThis, { window: globalThis, document: nothing, localStorage: nothing, location: { hash: '', protocol: 'file:' } });
console.log = () => {};
try {
  vm.runInThisContext(code);
} catch (e) {
  // The page cannot be drawn here, which comes last.
}

async function main() {
  await new Promise((done) => setTimeout(done, 0)); // its modules come up in turns of their own
  const all = {};
  for (const file of files) {
    const group = await globalThis.importer(path.basename(file), fs.readFileSync(file, 'utf8'));
    all[file] = group && group.profiles.map((p) => {
      const frames = [];
      p.forEachFrame((f) => frames.push([f.name, f.getSelfWeight(), f.getTotalWeight()]));
      return { name: p.getName(), unit: p.getWeightUnit(), total: p.getTotalWeight(), frames };
    });
  }
  process.stdout.write(JSON.stringify(all));
  process.exit(0);
}
main().catch((e) => { process.stderr.write(String(e && e.stack)); process.exit(1); });
