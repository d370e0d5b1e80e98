import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from '@jest/globals';
import { freePort, serve } from '../setup/loopback.js';
import { ROOT } from '../structure/repository.js';
import { TemplateProject } from './template-project.js';

test.each(['chat', 'mcp', 'nest'] as const)(
  'the template %s reports that its port is taken, and how to choose another',
  async (template) => {
    using project = new TemplateProject(template);
    if (template !== 'chat') await project.build();
    await using other = await serve((_request, response) => void response.end());
    const port = Number(new URL(other.url).port);
    await using program = project.start({ PORT: String(port), NO_COLOR: '1' });
    const { exitCode, stderr } = await program.ended();
    expect(stderr).toContain(`Port ${port} is taken. Choose another, for example PORT=${port + 1}.\n`);
    expect(stderr).not.toMatch(/^ +at /m);
    expect(exitCode).toBe(1);
  },
);

test.each(['basic', 'nest', 'mcp', 'chat', 'agent'])(
  'the README of the template %s names existing scripts and files',
  (template) => {
    const read = (path: string) => readFileSync(join(ROOT, 'create/templates', template, path), 'utf8');
    const page = read('README.md');
    const scripts = [...page.matchAll(/^npm (?:run )?(?!install)(\S+)/gm)].map(([, name]) => name);
    expect(scripts).toEqual(expect.arrayContaining(['start', 'test']));
    expect(Object.keys(JSON.parse(read('package.json')).scripts)).toEqual(expect.arrayContaining(scripts));
    for (const [, path = ''] of page.matchAll(/`((?:src|server|web|workspace)\/[^`]+\.[a-z]+)`/g))
      if (!path.endsWith('.gen.ts')) expect(read(path)).not.toBe('');
  },
);

test('the server of the template chat rejects invalid request targets and continues to run', async () => {
  using project = new TemplateProject('chat');
  const port = await freePort();
  await using server = project.start({ PORT: String(port) });
  await server.waitFor(/Chat: http/);
  const statuses = new Map<string, number>();
  for (const target of [...INVALID_PATHS, ...INVALID_CHATS])
    statuses.set(target, await statusOf(target, port));
  const expected = [
    ...INVALID_PATHS.map((target) => [target, 404]),
    ...INVALID_CHATS.map((target) => [target, 400]),
  ];
  expect([...statuses]).toEqual(expected);
  expect(server.exitCode).toBeNull();
});

const INVALID_PATHS = ['//', '*', 'http://[', 'http://a:b', '/\\\\', '/%', '/%00', '/../package.json'];
const INVALID_CHATS = ['/api/chat/%/messages', '/api/chat//stream', '/api/chat'];

/** The status of a request with exactly this target, which `fetch` would normalize. */
async function statusOf(target: string, port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  const cookie = 'session=00000000-0000-4000-8000-000000000000';
  socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`);
  return Number((await text(socket)).split(' ')[1]);
}
