// `npm run test:templates`: creates a project from each template of create-toolwright with the packed packages, runs
// its tests, starts it and uses it. Arguments choose templates: `npm run test:templates -- nest`.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const ROOT = join(import.meta.dirname, '..', '..');

/** Checks of a created project, for each template. */
const CHECKS = {
  basic: (folder) => {
    expectText(npm(folder, ['start', '--silent']), 'Ada Lovelace');
    const [show, refund] = outputsOfQuestions(folder);
    expectText(show, '"state":"shipped"');
    expectText(refund, 'refund_order({"orderId":"ord_1","reason":"other"})');
  },
  agent: (folder) => {
    expectText(npm(folder, ['start', '--silent']), 'Order tea before Friday');
    const [list, write] = outputsOfQuestions(folder);
    expectText(list, 'notes.md');
    expectText(write, "'write_file' was refused: it was not approved");
  },
  mcp: async (folder) => {
    await whileStarted(folder, async (url) => {
      const initialize = {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'test', version: '1' },
        },
      };
      const headers = { accept: 'application/json, text/event-stream' };
      expectText(await post(`${url}/mcp`, initialize, headers), '"name":"library"');
      const check = run(folder, 'npx', ['toolwright', 'mcp', 'check', `${url}/mcp`]);
      if (!/^ok +connects.*\nok +2 tools.*\n$/.test(check)) throw new Error(check);
    });
    npm(folder, ['run', 'build']);
    const request = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })}\n`;
    expectText(
      run(base, process.execPath, [join(folder, 'dist/stdio.js')], { input: request }),
      'borrow_book',
    );
  },
  chat: async (folder) => {
    const expectChat = async (url) => {
      expectText(await (await fetch(url)).text(), '<div id="root">');
      const session = await fetch(`${url}/api/session`, { method: 'POST' });
      const prompt = {
        id: crypto.randomUUID(),
        messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Refund order "ord_1"' }] }],
      };
      const cookie = session.headers.getSetCookie()[0].split(';')[0];
      expectText(await post(`${url}/api/chat`, prompt, { cookie }), 'tool-approval-request');
    };
    await whileStarted(folder, expectChat);
    await whileStarted(folder, expectChat, 'dev');
    const jest = ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js', 'test/browser/chat-template'];
    run(ROOT, process.execPath, jest, { environment: { TOOLWRIGHT_TEST_PROJECT: folder } });
  },
  nest: (folder) =>
    whileStarted(folder, async (url) => {
      const ask = (path, body) => post(`${url}/runs${path}`, body, { authorization: 'Bearer ada' });
      const [find, refund] = [...pageOf(folder).matchAll(/-d '(.*"text".*)'/g)].map(([, body]) =>
        JSON.parse(body),
      );
      expectText(await ask('', find), 'Ada Lovelace');
      const { runId, pending } = JSON.parse(await ask('', refund));
      const decision = { id: pending[0].id, approved: true };
      expectText(await ask(`/${runId}/decisions`, decision), 'Order ord_1 was refunded');
    }),
};

const chosen = process.argv.slice(2);
const base = mkdtempSync(join(tmpdir(), 'toolwright-templates-'));
let failed = 0;
try {
  const toolwright = pack(ROOT, 'toolwright');
  run(base, 'tar', ['-xzf', pack(join(ROOT, 'create'), 'create')]);
  for (const template of Object.keys(CHECKS).filter((name) => chosen.length === 0 || chosen.includes(name)))
    await tryTemplate(template, toolwright);
} finally {
  rmSync(base, { recursive: true, force: true });
}
console.log(failed === 0 ? 'All templates work.' : `${failed} failed.`);
process.exitCode = failed === 0 ? 0 : 1;

async function tryTemplate(template, toolwright) {
  const folder = join(base, `my-${template}`);
  const steps = {
    create: () => {
      run(base, process.execPath, ['package/index.mjs', `my-${template}`, '--template', template]);
      const manifest = join(folder, 'package.json');
      const text = readFileSync(manifest, 'utf8');
      writeFileSync(manifest, text.replace(/"toolwright": "[^"]+"/, `"toolwright": "file:${toolwright}"`));
    },
    'npm install': () => npm(folder, ['install', '--no-audit', '--no-fund', '--prefer-offline']),
    'npm test': () => expectText(npm(folder, ['test']), 'fail 0'),
    'npm run typecheck': () => npm(folder, ['run', '--if-present', 'typecheck']),
    'npm start': () => CHECKS[template](folder),
  };
  for (const [name, step] of Object.entries(steps)) {
    try {
      await step();
      console.log(`✓ ${template}: ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`✗ ${template}: ${name}\n${error.message.replaceAll(/^/gm, '    ')}`);
      return;
    }
  }
}

/** Starts a script of a project with a server, on free ports, and stops it after `use`. */
async function whileStarted(folder, use, script = 'start') {
  const [port, pagePort] = [await freePort(), await freePort()];
  const server = spawn('npm', ['run', '--silent', script], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', PORT: String(port), VITE_PORT: String(pagePort) },
    detached: true,
  });
  let output = '';
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (chunk) => (output += chunk));
  try {
    const urlOf = (usedPort) => `http://127.0.0.1:${usedPort}`;
    const usedPorts = script === 'dev' ? [port, pagePort] : [port];
    while (
      !(await Promise.all(usedPorts.map((usedPort) => fetch(urlOf(usedPort)))).then(Boolean, () => false))
    ) {
      if (server.exitCode !== null) throw new Error('The server ended before it accepted connections.');
      await delay(100);
    }
    await use(urlOf(usedPorts.at(-1)));
  } catch (error) {
    throw new Error(`${error.message}\n${output}`);
  } finally {
    // npm and the program that it started are in the same process group.
    if (server.exitCode === null) {
      process.kill(-server.pid, 'SIGTERM');
      await once(server, 'exit');
    }
  }
}

function pageOf(folder) {
  return readFileSync(join(folder, 'README.md'), 'utf8');
}

/** The outputs for the questions in the README. Without a terminal, calls that need approval are refused. */
function outputsOfQuestions(folder) {
  const questions = [...pageOf(folder).matchAll(/^npm start -- '(.*?)'/gm)].map(([, question]) => question);
  return questions.map((question) => npm(folder, ['start', '--silent', '--', question]));
}

async function post(url, body, headers) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return response.text();
}

function expectText(text, expected) {
  if (!text.includes(expected)) throw new Error(`expected ${expected} in:\n${text}`);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Packs a package and returns the path of the tarball. */
function pack(folder, name) {
  const target = join(base, `packed-${name}`);
  mkdirSync(target);
  npm(folder, ['pack', '--ignore-scripts', '--silent', '--pack-destination', target]);
  return join(target, readdirSync(target)[0]);
}

function npm(folder, args) {
  return run(folder, 'npm', args);
}

/** The output of a program; throws with the output if the program fails. */
function run(cwd, program, args, { environment = {}, input = '' } = {}) {
  const env = { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', CI: 'true', ...environment };
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env,
    input,
    encoding: 'utf8',
  });
  if (status === 0) return stdout + stderr;
  throw new Error(`${program} ${args.join(' ')} failed with ${error?.message ?? status}\n${stdout}${stderr}`);
}
