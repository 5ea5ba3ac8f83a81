// Programs of the mock server, read from the real catalog's front matter where it is at hand.
import { readdirSync, readFileSync } from 'node:fs';

const folder = new URL('../../../catalog/programs/', import.meta.url);

export function catalog() {
  return readdirSync(folder).filter((name) => name.endsWith('.wat')).map((file) => parse(readFileSync(new URL(file, folder), 'utf8')));
}

function parse(source) {
  const program = { name: '', description: '', family: '', origin: 'built in', args: [], uses: [], source, examples: [] };
  let table = program;
  for (const line of source.split('\n').filter((one) => one.startsWith(';;; ')).map((one) => one.slice(4))) {
    if (line === '[[args]]') program.args.push(table = {});
    else if (line === '[[example]]') program.examples.push(table = {});
    else {
      const at = line.indexOf(' = ');
      try {
        table[line.slice(0, at)] = JSON.parse(line.slice(at + 3));
      } catch { /* a table of files or keys, which the page does not show */ }
    }
  }
  program.family = program.name.split('_')[0];
  program.args = program.args.map((arg) => ({ name: arg.name, type: arg.type_hint ?? 'string', default: arg.default ?? null, required: arg.default === undefined, description: arg.description ?? '' }));
  program.examples = program.examples.map((one) => ({ args: one.args ?? [], output: one.results?.[0] }));
  return program;
}
