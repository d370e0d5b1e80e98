import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { defineTool, streamToolLoop, ToolRegistry } from 'toolwright';
import { OpenAIProvider } from 'toolwright/openai';
import { faultyFetch, type RecordedFetchOptions, recordedFetch } from 'toolwright/testing';
import { collect, completion, delta, events, json, LoopbackServer } from '../providers/loopback-server.js';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'toolwright-recording-'));
  file = join(folder, 'deep', 'recording.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const recording = (more: Partial<RecordedFetchOptions> = {}) =>
  recordedFetch({ file, mode: 'record', ...more });
const replay = (more: Partial<RecordedFetchOptions> = {}) =>
  recordedFetch({ file, mode: 'replay', fetch: () => Promise.reject(new Error('asked')), ...more });
const text = () => readFileSync(file, 'utf8');
const lines = () => text().trimEnd().split('\n');

/** A server that answers with these chunks. */
function serving(parts: readonly Uint8Array[], headers: Record<string, string> = {}, status = 200) {
  return async () => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    });
    return new Response(body, { headers, status });
  };
}

const encoded = (...parts: readonly string[]) => parts.map((part) => new TextEncoder().encode(part));

const tools = new ToolRegistry().register(
  defineTool({
    name: 'add',
    description: 'Adds',
    parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
    execute: ({ a, b }) => Number(a) + Number(b),
  }),
);
const call = { index: 0, id: 'c1', type: 'function', function: { name: 'add', arguments: '{"a":1,"b":2}' } };

describe('recordedFetch', () => {
  test('records a streamed run of OpenAIProvider, and replays it without a server, part by part', async () => {
    const run = async (fetch: typeof globalThis.fetch, baseURL: string, question = 'One and two?') => {
      const provider = new OpenAIProvider({ baseURL, fetch, apiKey: 'sk-live-secret', maxRetries: 0 });
      const stream = streamToolLoop({ provider, model: 'm', tools }, [{ role: 'user', content: question }]);
      const told = (await collect(stream)).flatMap((event) =>
        event.type === 'text-delta' ? [event.text] : [],
      );
      return { told, result: await stream.result };
    };
    const server = await LoopbackServer.start((response, request) => {
      const isFirst = !JSON.stringify(request.body.messages).includes('"tool"');
      const chunks = isFirst
        ? [delta({ tool_calls: [call] }), delta({}, 'tool_calls')]
        : [delta({ content: 'It is ' }), delta({ content: 'three ✓.' }), delta({}, 'stop')];
      events(chunks)(response, request);
    });
    const record = recording();
    const first = await run(record, server.baseURL);
    await server[Symbol.asyncDispose]();
    expect(first.result).toMatchObject({ status: 'completed', content: 'It is three ✓.' });
    expect(lines()).toHaveLength(2);
    expect(text()).not.toContain('sk-live-secret');

    const player = replay();
    const again = await run(player, 'http://127.0.0.1:9/v1');
    expect(again.told).toEqual(first.told);
    expect(again.result.messages).toEqual(first.result.messages);
    player.assertUsedUp();

    const other = replay();
    const { result } = await run(other, 'http://127.0.0.1:9/v1', 'One and three?');
    expect(result.status).toBe('failed');
    expect(String((result.error as Error).cause)).toContain(
      'request 1 (POST /v1/chat/completions) differs from line 1',
    );
    const difference = [
      `request 1 (POST /v1/chat/completions) differs from line 1 of ${file}: body.messages[0].content`,
      '- recorded: "One and two?"',
      '+ sent:     "One and three?"',
    ];
    expect(() => other.assertUsedUp()).toThrow(difference.join('\n'));
  });

  test('never writes a secret', async () => {
    const secret = fc.stringMatching(/^[A-Za-z0-9_-]{12,40}$/);
    await fc.assert(
      fc.asyncProperty(secret, fc.nat({ max: 30 }), async (value, at) => {
        const said = `{"error":"wrong key ${value}"}`;
        const parts = encoded(said.slice(0, at), said.slice(at)).filter(({ length }) => length > 0);
        const fetch = recording({
          fetch: serving(parts, { 'set-cookie': value, 'openai-organization': value }),
        });
        const response = await fetch(`https://127.0.0.1/v1?api_key=${value}&page=2`, {
          method: 'POST',
          headers: {
            ...{ authorization: `Bearer ${value}`, cookie: `sid=${value}; a=b`, 'x-api-key': value },
            ...{ 'openai-organization': `org-${value}`, 'content-type': 'application/json' },
          },
          body: JSON.stringify({ note: `my key is ${value}` }),
        });
        expect(await response.text()).toBe(said);
        expect(text()).not.toContain(value);
        expect(text()).toContain('page=2');
        expect(text()).toContain('my key is [removed]');
      }),
    );
  });

  test('user name and password in a URL are not written', async () => {
    const fetch = recording({ fetch: serving([]) });
    // The global fetch refuses URLs with a password; others, such as that of a proxy, accept them.
    await expect(fetch('https://me:hunter2hunter2@127.0.0.1/v1')).rejects.toThrow();
    await fetch(new Request('https://127.0.0.1/v1#part'));
    expect(text()).not.toContain('hunter2');
  });

  test('redact changes the written and the compared text', async () => {
    const redact = (said: string) => said.replaceAll(/cus_\d+/g, 'cus_X');
    const ask = (fetch: typeof globalThis.fetch, id: string) =>
      fetch('http://127.0.0.1/', { method: 'POST', body: `find ${id}` });
    await (await ask(recording({ fetch: serving(encoded('found cus_1')), redact }), 'cus_1')).text();
    expect(text()).not.toContain('cus_1');
    expect(await (await ask(replay({ redact }), 'cus_2')).text()).toBe('found cus_X');
  });

  test('stores every part of a body byte for byte', async () => {
    const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 8 }), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(parts, fc.uint8Array({ maxLength: 8 }), async (chunks, sent) => {
        const ask = (fetch: typeof globalThis.fetch) =>
          fetch('http://127.0.0.1/', { method: 'POST', body: Buffer.from(sent) });
        const recorded = await ask(recording({ fetch: serving(chunks) }));
        expect(await collect(recorded.body!)).toEqual(chunks);
        const replayed = await ask(replay());
        expect((await collect(replayed.body!)).map((part) => [...part])).toEqual(
          chunks.map((part) => [...part]),
        );
      }),
    );
  });

  test('a multipart form is recorded with the same body each time, although its boundary differs', async () => {
    const upload = () => {
      const form = new FormData();
      form.set('file', new Blob([new Uint8Array([0, 255, 128])]), 'a.bin');
      return { method: 'POST', body: form };
    };
    await (await recording({ fetch: serving(encoded('ok')) })('http://127.0.0.1/', upload())).text();
    expect(await (await replay()('http://127.0.0.1/', upload())).text()).toBe('ok');
  });

  test('a truncated body and a failed connection are replayed as such', async () => {
    const faults = [{ kind: 'cut', afterBytes: 3 }, { kind: 'reset' }] as const;
    const failing = faultyFetch(serving(encoded('hello')), faults);
    for (const open of [() => recording({ fetch: failing }), replay]) {
      const fetch = open();
      const response = await fetch('http://127.0.0.1/a');
      const reader = response.body!.getReader();
      expect(Buffer.from((await reader.read()).value!).toString()).toBe('hel');
      await expect(reader.read()).rejects.toThrow('terminated');
      await expect(fetch('http://127.0.0.1/b')).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } });
    }
  });

  test('lines are in the order of the requests, and a replay accepts requests in any order', async () => {
    const slowFirst: typeof globalThis.fetch = async (input) => {
      if (String(input).endsWith('/a')) await new Promise((resolve) => setTimeout(resolve, 20));
      return new Response(String(input).slice(-1));
    };
    const record = recording({ fetch: slowFirst });
    const both = await Promise.all(['a', 'b'].map((path) => record(`http://127.0.0.1/${path}`)));
    expect(await Promise.all(both.map((response) => response.text()))).toEqual(['a', 'b']);
    expect(lines().map((line) => JSON.parse(line).request.url)).toEqual([
      'http://127.0.0.1/a',
      'http://127.0.0.1/b',
    ]);
    const play = replay();
    for (const path of ['b', 'a'])
      expect(await (await play(`http://127.0.0.1:99/${path}`)).text()).toBe(path);
    play.assertUsedUp();
  });

  test('replies that are not read, or only partly, are recorded', async () => {
    const fetch = recording({ fetch: serving(encoded('one', 'two')) });
    await fetch('http://127.0.0.1/unread');
    await (await fetch('http://127.0.0.1/left')).body?.cancel();
    await (await fetch('http://127.0.0.1/read')).text();
    expect(lines()).toHaveLength(3);
  });

  test('reports requests that are not in the recording, and recorded requests that were never sent', async () => {
    const record = recording({ fetch: serving(encoded('x')) });
    for (const path of ['a', 'a', 'b']) await (await record(`http://127.0.0.1/${path}`)).text();
    const play = replay();
    for (const path of ['a', 'a']) await play(`http://127.0.0.1/${path}`);
    expect(() => play.assertUsedUp()).toThrow(`1 of 3 recorded requests in ${file} were not made`);
    await play('http://127.0.0.1/b');
    play.assertUsedUp();
    await expect(play('http://127.0.0.1/a')).rejects.toThrow(
      `request 4 (GET /a) is not in the recording ${file}, which has 3`,
    );
  });

  test('shows the position at which long texts differ, and a missing field', async () => {
    const ask = (fetch: typeof globalThis.fetch, body: unknown) =>
      fetch('http://127.0.0.1/', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const long = 'x'.repeat(500);
    await (
      await ask(recording({ fetch: serving([]) }), { 'a b': [{ text: `${long}1${long}` }], n: 1 })
    ).text();
    await expect(ask(replay(), { 'a b': [{ text: `${long}2${long}` }], n: 1 })).rejects.toThrow(
      /body\["a b"\]\[0\]\.text\n- recorded: …x{30}1x+…\n\+ sent: {5}…x{30}2x+…\n/,
    );
    await expect(ask(replay(), { 'a b': [{ text: `${long}1${long}` }] })).rejects.toThrow(
      /body\.n\n- recorded: 1\n\+ sent: {5}nothing\n/,
    );
  });

  test('auto records if there is no file, and replays if there is a file', async () => {
    const asked = recordedFetch({ file, fetch: serving(encoded('said')) });
    expect(asked.mode).toBe('record');
    expect(await (await asked('http://127.0.0.1/')).text()).toBe('said');
    asked.assertUsedUp();
    expect(existsSync(file)).toBe(true);
    const played = recordedFetch({ file, fetch: serving(encoded('other')) });
    expect(played.mode).toBe('replay');
    expect(await (await played('http://127.0.0.1/')).text()).toBe('said');
  });

  test('the same traffic gives the same file', async () => {
    await using server = await LoopbackServer.start(json(completion({ content: 'Hi' })));
    const texts: string[] = [];
    for (const _ of [1, 2]) {
      const fetch = recording();
      const provider = new OpenAIProvider({ baseURL: server.baseURL, fetch });
      await provider.chat({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], options: {} });
      texts.push(text());
    }
    expect(texts[1]).toBe(texts[0]);
  });

  test('an abort ends a replay like a real request', async () => {
    await (await recording({ fetch: serving(encoded('a', 'b')) })('http://127.0.0.1/')).text();
    const gone = AbortSignal.abort(new Error('gone'));
    await expect(replay()('http://127.0.0.1/', { signal: gone })).rejects.toThrow('gone');
    const controller = new AbortController();
    const reader = (await replay()('http://127.0.0.1/', { signal: controller.signal })).body!.getReader();
    await reader.read();
    controller.abort(new Error('enough'));
    await expect(reader.read()).rejects.toThrow('enough');
  });

  test('a file that is missing or is not a recording is reported with the line', async () => {
    expect(() => replay()).toThrow(`the recording ${file} does not exist; create it with mode: 'record'`);
    await (await recording({ fetch: serving([]) })('http://127.0.0.1/')).text();
    writeFileSync(file, `${text()}{"request":1}\n`);
    expect(() => replay()).toThrow(`${file}:2 is not a line of a recording`);
    expect(() => recordedFetch({ file, mode: 'rerecord' as 'record' })).toThrow("mode: 'record' or 'replay'");
  });
});
