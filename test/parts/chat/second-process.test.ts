import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from 'ai';
import { type BuiltProgram, buildProgram } from '../../processes/build-program.js';
import { NodeProcess } from '../../processes/node-process.js';
import { describePostgres } from '../../services/services.js';
import { TestSchemas } from '../postgres/test-schema.js';
import { said } from './chat-reader.js';

// One process serves a chat and runs its turns; the reader reconnects to another process.

const folder = mkdtempSync(join(tmpdir(), 'toolwright-second-'));
const started: NodeProcess[] = [];
let program: BuiltProgram;

beforeAll(() => {
  program = buildProgram('test/parts/chat/chat-process-program.ts');
});
afterEach(async () => {
  for (const one of started.splice(0)) await one.kill();
});
afterAll(() => {
  program.remove();
  rmSync(folder, { recursive: true, force: true });
});

interface ChatProcess {
  readonly process: NodeProcess;
  readonly url: string;
}

async function start(place: string): Promise<ChatProcess> {
  const one = new NodeProcess([program.file, place], { folder });
  started.push(one);
  return { process: one, url: (await one.waitFor(/listening: (.+)/))[1] as string };
}

interface Frame {
  readonly id: number | undefined;
  readonly data: string;
}

/** The frames of a stream until one contains a text, or its end; then the reader disconnects. */
async function readFrames(response: Response, until?: string): Promise<readonly Frame[]> {
  expect(response.status).toBe(200);
  const frames: Frame[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    const parts = (text + decoder.decode(bytes, { stream: true })).split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) {
      const id = /^id: (\d+)$/m.exec(part)?.[1];
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (data === undefined) continue;
      frames.push({ data, id: id === undefined ? undefined : Number(id) });
      if (until !== undefined && data.includes(until)) return frames;
    }
  }
  return frames;
}

const headers = { 'content-type': 'application/json', 'x-user': 'ada' };

function ask({ url }: ChatProcess, protocol: string): Promise<Response> {
  const body = JSON.stringify({ id: 'c1', messages: [said('Count', 'm1')] });
  return fetch(`${url}/${protocol}`, { method: 'POST', headers, body });
}

function comeBack({ url }: ChatProcess, protocol: string, seen: number): Promise<Response> {
  return fetch(`${url}/${protocol}/c1/stream`, { headers: { ...headers, 'last-event-id': `${seen}` } });
}

/** What a reader received from the first process, and from the second after reconnecting. */
interface Heard {
  readonly before: readonly Frame[];
  readonly after: readonly Frame[];
}

async function readInTwo(
  place: string,
  { protocol, isKilled }: { readonly protocol: string; readonly isKilled: boolean },
): Promise<Heard> {
  const one = await start(place);
  const before = await readFrames(await ask(one, protocol), 'two');
  const seen = before.at(-1)?.id as number;
  if (isKilled) await one.process.kill();
  const other = await start(place);
  const rest = comeBack(other, protocol, seen).then((response) => readFrames(response));
  (isKilled ? other : one).process.write('go\n');
  return { before, after: await rest };
}

/** The message that the AI SDK builds from a stream's frames. */
async function messageOf(frames: readonly Frame[]): Promise<UIMessage | undefined> {
  const chunks = frames.flatMap(({ data }): UIMessageChunk[] =>
    data === '[DONE]' ? [] : [JSON.parse(data)],
  );
  let message: UIMessage | undefined;
  const onError = (error: unknown): never => {
    throw error;
  };
  for await (const next of readUIMessageStream({ stream: ReadableStream.from(chunks), onError }))
    message = next;
  return message;
}

/** The tests, over a store that processes share. */
function testsOver(newPlace: () => string): void {
  test.each([false, true])(
    'a reader that reconnects to another process gets every event once (the first process was killed: %p)',
    async (isKilled) => {
      const { before, after } = await readInTwo(newPlace(), { protocol: 'events', isKilled });
      const all = [...before, ...after];
      expect(all.map(({ id }) => id)).toEqual(all.map((_, index) => index + 1));
      const events = all.map(({ data }) => JSON.parse(data));
      const typesOf = (type: string) => events.filter((event) => event.type === type);
      expect([typesOf('turn-start').length, typesOf('turn-end').length]).toEqual([1, 1]);
      const texts = typesOf('text-delta').map(({ text }) => text);
      // A reply that was lost with its process is requested again, and its readers are notified.
      expect([typesOf('run-start').length, texts.join('')]).toEqual(
        isKilled ? [2, 'one two one two three four'] : [1, 'one two three four'],
      );
    },
  );

  test.each([false, true])(
    'the message of `useChat` is complete after reconnecting to another process (the first was killed: %p)',
    async (isKilled) => {
      const { before, after } = await readInTwo(newPlace(), { protocol: 'ui-messages', isKilled });
      const message = await messageOf([...before, ...after]);
      const texts = message?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
      expect(texts?.join('')).toBe('one two three four');
      expect(after.filter(({ data }) => data.includes('reset-step'))).toHaveLength(isKilled ? 1 : 0);
      expect(after.at(-1)?.data).toBe('[DONE]');
    },
  );
}

describe('chats of two processes in SQLite', () => {
  let files = 0;
  testsOver(() => {
    files += 1;
    return join(folder, `${files}.sqlite`);
  });
});

describePostgres('chats of two processes in PostgreSQL', (service) => {
  const schemas = new TestSchemas(service);
  testsOver(() => `${service.url}#${schemas.newSchema()}`);
});
