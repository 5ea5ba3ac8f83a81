// A mock server: the HTTP contract with scripted runs, and the static files of the page.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { extname, join, normalize } from 'node:path';
import { routes } from './routes.js';
import { World } from './world.js';

const PAGE = fileURLToPath(new URL('../../page/', import.meta.url));
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml' };
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Starts the server; returns its address, its token, its world, and a function that stops it. */
export function start({ port = 0, token = 'mock-token' } = {}) {
  const world = new World();
  world.seed();
  const sockets = new Set();
  const state = { offlineUntil: 0, calls: [] };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    if (Date.now() < state.offlineUntil) return request.socket.destroy();
    if (url.pathname === '/mock/offline') {
      state.offlineUntil = Date.now() + Number(url.searchParams.get('ms') ?? 1000);
      for (const socket of sockets) if (socket !== request.socket) socket.destroy();
      return response.end('ok');
    }
    try {
      if (url.pathname.startsWith('/api/') || url.pathname === '/chat') {
        state.calls.push(`${request.method} ${url.pathname}`);
        if (request.headers.authorization !== `Bearer ${token}`) return fail(response, 401, 'unauthorized', 'the token is missing or wrong', 'Send `Authorization: Bearer TOKEN`.');
        return await routes(world, request, response, url);
      }
      if (url.pathname === '/healthz') return response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok","version":"0.3.0"}');
      await serveFile(url.pathname, response);
    } catch (error) {
      if (!response.headersSent) fail(response, 500, 'internal', String(error));
      else response.destroy();
    }
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () => resolve({
      url: `http://127.0.0.1:${server.address().port}`, token, world, state,
      stop: () => new Promise((done) => {
        for (const socket of sockets) socket.destroy();
        for (const run of world.runs.values()) clearTimeout(run.timer);
        server.close(() => done(undefined));
      }),
    }));
  });
}

async function serveFile(path, response) {
  const name = path === '/' ? 'index.html' : path.startsWith('/page/') ? decodeURIComponent(path.slice('/page/'.length)) : '';
  const file = normalize(join(PAGE, name));
  if (name === '' || !file.startsWith(PAGE)) return response.writeHead(404).end();
  try {
    const bytes = await readFile(file);
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream', 'content-security-policy': CSP, 'x-content-type-options': 'nosniff', 'cache-control': 'no-cache' }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
}

export function fail(response, status, code, message, hint) {
  response.writeHead(status, { 'content-type': 'application/json', ...(status === 503 ? { 'retry-after': '1' } : {}) })
    .end(JSON.stringify({ error: { code, message, hint, retryable: status === 429 || status === 503 } }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url, token } = await start({ port: Number(process.env.PORT ?? 8790) });
  console.log(`${url}/#token=${token}`);
}
