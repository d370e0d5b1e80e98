import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { Client } from 'pg';
import { builtFile } from '../processes/built-file.js';
import { NodeProcess } from '../processes/node-process.js';
import { runNode } from '../processes/run-node.js';
import { describePostgres, redis, type TestService } from '../services/services.js';

// Runs the four processes of examples/fleet with real PostgreSQL and Redis.

const PROGRAM = 'dist/examples/fleet/main.js';
const HEADERS = { 'content-type': 'application/json', authorization: 'Bearer token-one' };

interface ToldEvent {
  readonly id: number;
  readonly event: Readonly<Record<string, unknown>> & { readonly type: string };
}

/** The fleet, with its own schema and queue. */
class Fleet implements AsyncDisposable {
  readonly name: string;
  readonly #process: NodeProcess;
  readonly #database: Client;

  private constructor(postgres: TestService, redisUrl: string, folder: string) {
    this.name = postgres.newName();
    this.#database = new Client({ connectionString: postgres.url });
    this.#process = new NodeProcess([builtFile(PROGRAM)], {
      folder,
      environment: {
        DATABASE_URL: postgres.url,
        REDIS_URL: redisUrl,
        FLEET_NAME: this.name,
        FLEET_LEASE_MS: '3000',
        PORT: '0',
      },
    });
  }

  static async start(postgres: TestService, redisUrl: string, folder: string): Promise<Fleet> {
    const fleet = new Fleet(postgres, redisUrl, folder);
    await fleet.#database.connect();
    return fleet;
  }

  /** The address of a member after its `nth` start. */
  async member(name: string, nth = 1): Promise<{ readonly url: string; readonly pid: number }> {
    const started = `(?:[^]*?${name}: is at (\\S+), process (\\d+)\\n){${nth}}`;
    const [, url = '', pid] = await this.#process.waitFor(new RegExp(`^${started}`));
    return { url, pid: Number(pid) };
  }

  waitFor(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#process.waitFor(pattern);
  }

  async paid(): Promise<readonly unknown[]> {
    const { rows } = await this.#database.query(`SELECT order_id, cents FROM ${this.name}.payments`);
    return rows;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.send('SIGTERM');
    await this.#process.ended();
    await this.#database.query(`DROP SCHEMA IF EXISTS ${this.name} CASCADE`);
    await this.#database.end();
  }
}

/** Reads a stream of events, up to `most` of them. */
async function read(response: Response, most = Number.POSITIVE_INFINITY): Promise<readonly ToldEvent[]> {
  const told: ToldEvent[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const [, id, data] = /^id: (\d+)\n(?:event: .*\n)?data: (.*)$/m.exec(frame) ?? [];
      if (id !== undefined) told.push({ id: Number(id), event: JSON.parse(data ?? 'null') });
    }
    if (told.length >= most) return told.slice(0, most);
  }
  return told;
}

function say(url: string, chat: string, message: object): Promise<Response> {
  const body = JSON.stringify({ id: chat, messages: [message] });
  return fetch(url, { method: 'POST', headers: HEADERS, body });
}

function prompt(url: string, chat: string, text: string): Promise<Response> {
  return say(url, chat, { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] });
}

function reconnect(url: string, chat: string, lastEvent: number): Promise<Response> {
  return fetch(`${url}/${chat}/stream`, { headers: { ...HEADERS, 'last-event-id': `${lastEvent}` } });
}

/** Reconnects until there are events after `lastEvent`. */
async function readLater(url: string, chat: string, lastEvent: number): Promise<readonly ToldEvent[]> {
  for (;;) {
    const response = await reconnect(url, chat, lastEvent);
    if (response.status === 200) return read(response);
    await pause(200);
  }
}

const types = (told: readonly ToldEvent[]) => told.map(({ event }) => event.type);

describePostgres('examples/fleet', (postgres) => {
  const redisUrl = redis()?.url;
  if (redisUrl === undefined) {
    test.skip('a chat on three processes [needs Redis]', () => {});
    return;
  }

  test('a chat survives other ports and the death of every worker, pays once and reports once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'fleet-example-'));
    await using fleet = await Fleet.start(postgres, redisUrl, folder);
    const web = await fleet.member('web');
    const workers = [await fleet.member('worker 1'), await fleet.member('worker 2')];

    // A reader that leaves the web process and reconnects to a worker.
    const first = await read(await prompt(web.url, 'chat-1', 'List the orders'), 3);
    const rest = await readLater(workers[0]?.url ?? '', 'chat-1', first.at(-1)?.id ?? 0);
    const numbers = [...first, ...rest].map(({ id }) => id);
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    expect(types([...first, ...rest]).at(-1)).toBe('turn-end');
    expect(JSON.stringify(rest)).toContain('lamp');

    // An approval that is answered after both workers were killed.
    const asked = await read(await prompt(web.url, 'chat-1', 'Pay order 2'));
    const [call] = pendingIn(asked);
    for (const { pid } of workers) process.kill(pid, 'SIGKILL');
    const { url } = await fleet.member('worker 2', 2);
    expect(await fleet.paid()).toEqual([]);
    const approval = { id: call?.id, approved: true };
    const part = {
      type: 'tool-pay_order',
      toolCallId: call?.callId,
      state: 'approval-responded',
      approval,
    };
    const approved = await say(url, 'chat-1', { id: 'm', role: 'assistant', parts: [part] });
    expect(approved.status).toBe(200);
    const paid = await read(approved);
    expect(types(paid).at(-1)).toBe('turn-end');
    expect(await fleet.paid()).toEqual([{ order_id: 2, cents: 24_900 }]);

    // A report that another worker starts again.
    const started = await read(await prompt(web.url, 'chat-1', 'Write the report of 2025'));
    const [, worker = ''] = await fleet.waitFor(/(worker \d): begins the report of 2025/);
    process.kill((await fleet.member(worker, 2)).pid, 'SIGKILL');
    const told = await readLater(web.url, 'chat-1', started.at(-1)?.id ?? 0);
    expect(JSON.stringify(told)).toContain('Report of 2025: 249 euros were paid.');
    expect(types(told).at(-1)).toBe('turn-end');
    expect((await reconnect(web.url, 'chat-1', told.at(-1)?.id ?? 0)).status).toBe(204);

    const other = { ...HEADERS, authorization: 'Bearer token-two' };
    expect((await fetch(`${web.url}/chat-1/stream`, { headers: other })).status).toBe(403);
    rmSync(folder, { recursive: true, force: true });
  });
});

/** The pending calls of a suspended turn. */
function pendingIn(told: readonly ToldEvent[]): readonly { readonly id: string; readonly callId: string }[] {
  const last = told.at(-1)?.event;
  if (last?.type !== 'turn-suspended') throw new Error(`it is not suspended: ${JSON.stringify(last)}`);
  return last.pending as ReturnType<typeof pendingIn>;
}

test('an invalid environment variable is reported with one line and exit code 1', () => {
  const environment = { PORT: 'http' };
  const { exitCode, stderr } = runNode([builtFile(PROGRAM)], { folder: tmpdir(), environment });
  expect([exitCode, stderr]).toEqual([1, "PORT must be a whole number, and is 'http'\n"]);
});
