// A stand-in for the server's check of a program: brackets, a few unknown names, authority.
const FUNCTIONS = { fs: 'read write list append delete', str: 'split join lines words upper lower to_int to_float eq len', kv: 'get set incr delete list', map: 'incr get set keys', http: 'get post', arr: 'get push len', date: 'now format', secret: 'get', sys: 'argv' };

export function check(body) {
  const diagnostics = [];
  const open = [];
  let line = 1;
  let column = 0;
  const text = body.replace(/"(?:\\.|[^"\\])*"|;;[^\n]*/g, (part) => part.replace(/[()[\]]/g, ' '));
  for (const character of text) {
    column += 1;
    if (character === '\n') {
      line += 1;
      column = 0;
    }
    if (character === '(') open.push({ line, column });
    if (character === ')' && !open.pop()) diagnostics.push(at(line, column, 1, 'error', 'unexpected closing bracket', 'remove it'));
  }
  const last = open.pop();
  if (last) {
    diagnostics.push({ ...at(last.line, last.column, 1, 'error', 'this bracket is never closed', `add ${open.length + 1} \`)\` at the end`), fix: { text: body + ')'.repeat(open.length + 1) } });
  }
  const lines = body.split('\n');
  const authority = { imports: [], reads: [], writes: [], hosts: [], secrets: [], programs: [], unknown: [] };
  lines.forEach((source, i) => {
    for (const match of source.matchAll(/\(([a-z]+)\.([a-z_]+)(?:\s+"([^"]*)")?/g)) {
      const [, space, name, literal] = match;
      if (!(FUNCTIONS[space] ?? '').split(' ').includes(name)) {
        const isTypo = name === 'increment';
        diagnostics.push({ ...at(i + 1, match.index + 2, space.length + name.length + 1, 'error', `unknown function \`${space}.${name}\``, isTypo ? 'did you mean `map.incr`?' : undefined), ...(isTypo ? { fix: { text: body.replace('map.increment', 'map.incr') } } : {}) });
        continue;
      }
      authority.imports.push(`${space}.${name}`);
      if (space === 'fs') (literal ? (name === 'read' || name === 'list' ? authority.reads : authority.writes) : authority.unknown).push(literal ?? `${space}.${name}: a path that is known only at run time`);
      if (space === 'http') (literal ? authority.hosts : authority.unknown).push(literal ? new URL(literal, 'https://x').host : `${space}.${name}: a host that is known only at run time`);
      if (space === 'secret' && literal) authority.secrets.push(literal);
    }
    for (const match of source.matchAll(/\(call\s+"([^"]+)"/g)) authority.programs.push(match[1]);
    const unused = /\(let (\$unused\w*)/.exec(source);
    if (unused) diagnostics.push(at(i + 1, unused.index + 6, unused[1].length, 'warning', `${unused[1]} is never used`));
  });
  for (const key of Object.keys(authority)) authority[key] = [...new Set(authority[key])];
  return { ok: !diagnostics.some((one) => one.severity === 'error'), diagnostics, authority, formatted: body.replace(/[ \t]+$/gm, '') };
}

function at(line, column, length, severity, message, hint) {
  return { line, column, end_line: line, end_column: column + length, severity, message, ...(hint ? { hint } : {}) };
}

export function exec(body, args, fixtures) {
  const result = check(body);
  const failure = result.diagnostics.find((one) => one.severity === 'error');
  if (failure) return { success: false, exit_code: null, output: '', error: `line ${failure.line}, column ${failure.column}: ${failure.message}`, dur_ms: 0, fuel: null };
  const read = /\(out \(fs\.read "([^"]*)"\)\)/.exec(body);
  if (read && fixtures) {
    const text = fixtures.files?.[read[1]];
    return text === undefined ? { success: false, exit_code: 4, output: '', error: `ENOENT: there is no file "${read[1]}"`, dur_ms: 1, fuel: 900 } : { success: true, exit_code: 0, output: text, error: null, dur_ms: 1, fuel: 900 };
  }
  const output = [...body.matchAll(/\((?:out|ret) (?:\(arg (\d)\)|"([^"]*)"|\(str\.upper "([^"]*)"\))/g)]
    .map(([, arg, text, upper]) => (arg !== undefined ? args[Number(arg)] ?? '' : upper !== undefined ? upper.toUpperCase() : text)).join('\n');
  return { success: true, exit_code: 0, output, error: null, dur_ms: 2, fuel: 41_022 };
}
