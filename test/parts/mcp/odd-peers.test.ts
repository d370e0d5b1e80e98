import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from '@jest/globals';
import { defineTool, ToolRegistry } from 'toolwright';
import { createMcpServer, type McpServerOptions } from 'toolwright/mcp';
import { type Listening, listen } from './mcp-connections.js';
import { HEADERS, INITIALIZE } from './raw-requests.js';

const LARGE = 2_000_000;
const callOf = (id: unknown, name: string, others: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, ...others },
});

let isRunning = Promise.withResolvers<void>();
let isAborted = Promise.withResolvers<unknown>();
const registry = new ToolRegistry().register(
  defineTool({
    name: 'wait',
    description: 'Waits until nobody wants it any more',
    execute: (_args, { signal }) =>
      new Promise((resolve) => {
        isRunning.resolve();
        signal.addEventListener('abort', () => {
          isAborted.resolve(signal.reason);
          resolve('late');
        });
      }),
  }),
  defineTool({
    name: 'echo',
    description: 'Says it again',
    parameters: { type: 'object', properties: { words: { type: 'string' } } } as const,
    execute: ({ words = 'nothing' }, context) => {
      context.progress(1);
      return words;
    },
  }),
  defineTool({
    name: 'large',
    description: 'Says much',
    maxResultChars: LARGE,
    execute: () => 'é'.repeat(LARGE),
  }),
);

describe('over stdio', () => {
  function connect(options: McpServerOptions = {}) {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const mcp = createMcpServer(registry, options);
    const connection = mcp.stdio({ input, output });
    const lines = createInterface({ input: output });
    const answers = new Map();
    let heard = Promise.withResolvers<void>();
    lines.on('line', (line) => {
      const message = JSON.parse(line);
      answers.set(message.id, message);
      heard.resolve();
      heard = Promise.withResolvers();
    });
    return {
      connection,
      /** Resolves when the request with this id has its answer. */
      async answered(id: unknown) {
        while (!answers.has(id)) await heard.promise;
      },
      write: (line: string | Buffer | object) =>
        input.write(typeof line === 'string' || Buffer.isBuffer(line) ? line : `${JSON.stringify(line)}\n`),
      /** Ends the input, and returns all answers by id. */
      async end() {
        input.end();
        await connection.closed;
        await mcp.close();
        const closed = once(lines, 'close');
        output.end();
        await closed;
        return answers;
      },
    };
  }

  test('invalid messages, split lines and unknown call ids do not disturb other calls', async () => {
    const { write, answered, end } = connect();
    write(INITIALIZE);
    write('\n  \r\nnot json\n[]\n{"jsonrpc":"2.0","id":null}\n');
    write(Buffer.from([0xff, 0xfe, 0x0a]));
    write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } });
    write({ jsonrpc: '2.0', method: 'notifications/cancelled' });
    const line = Buffer.from(`${JSON.stringify(callOf(2, 'echo', { arguments: { words: 'é😀' } }))}\r\n`);
    const middle = line.indexOf(0xc3) + 1;
    write(line.subarray(0, middle));
    await new Promise(setImmediate);
    write(line.subarray(middle));
    write(callOf('three', 'echo'));
    await Promise.all([answered(2), answered('three')]);
    const answers = await end();
    expect(answers.get(2)).toMatchObject({ result: { content: [{ text: 'é😀' }] } });
    expect(answers.get('three')).toMatchObject({ result: { content: [{ text: 'nothing' }] } });
  });

  test('arguments that are nested too deep or have an infinite number are an error of the call', async () => {
    const { write, answered, end } = connect();
    write(INITIALIZE);
    const [nested, endless] = [
      callOf(2, 'echo', { arguments: { words: 0 } }),
      callOf(3, 'echo', { arguments: { words: 0 } }),
    ];
    write(`${JSON.stringify(nested).replace(':0', `:${'['.repeat(200_000)}${']'.repeat(200_000)}`)}\n`);
    write(`${JSON.stringify(endless).replace(':0', ':1e999')}\n`);
    await Promise.all([answered(2), answered(3)]);
    const answers = await end();
    expect(answers.get(2).result).toEqual({
      isError: true,
      content: [
        {
          type: 'text',
          text: "Validation failed for tool 'echo':\n  - the arguments are nested too deep: at most 500 levels",
        },
      ],
    });
    expect(answers.get(3).result.content[0].text).toContain('words: is too large for a number');
  });

  test('a cancelled call is aborted with the client’s reason, and not answered', async () => {
    [isRunning, isAborted] = [Promise.withResolvers(), Promise.withResolvers()];
    const { write, answered, end } = connect();
    write(INITIALIZE);
    write(callOf(2, 'wait'));
    await isRunning.promise;
    write({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 2, reason: 'changed my mind' },
    });
    expect(await isAborted.promise).toBe('changed my mind');
    write(callOf(3, 'echo'));
    await answered(3);
    expect([...(await end()).keys()]).toEqual([1, 3]);
  });

  test('a large result is sent completely, and the next result after it', async () => {
    const { write, answered, end } = connect();
    write(INITIALIZE);
    write(callOf(2, 'large'));
    write(callOf(3, 'echo'));
    await Promise.all([answered(2), answered(3)]);
    const answers = await end();
    expect(answers.get(2).result.content[0].text).toHaveLength(LARGE);
    expect(answers.get(3)).toMatchObject({ result: { content: [{ text: 'nothing' }] } });
  });

  test('the end of the input aborts running calls, and they are answered', async () => {
    [isRunning, isAborted] = [Promise.withResolvers(), Promise.withResolvers()];
    const { write, end } = connect();
    write(INITIALIZE);
    write(callOf(2, 'wait'));
    await isRunning.promise;
    const answers = await end();
    await isAborted.promise;
    expect(answers.get(2)).toMatchObject({ result: { isError: true } });
  });

  test('a closed server answers no request', async () => {
    const mcp = createMcpServer(registry);
    await mcp.close();
    const output = new PassThrough();
    const input = new PassThrough();
    const connection = mcp.stdio({ input, output });
    await connection.closed;
    input.end(`${JSON.stringify(INITIALIZE)}\n`);
    await new Promise(setImmediate);
    output.end();
    expect(await text(output)).toBe('');
  });

  test('a request that is too large ends the connection', async () => {
    const errors: unknown[] = [];
    const { write, end, connection } = connect({
      maxRequestBytes: 1_000,
      onError: (error) => errors.push(error),
    });
    write(INITIALIZE);
    write(callOf(2, 'echo', { arguments: { words: 'x'.repeat(2_000) } }));
    await connection.closed;
    expect(String(errors[0])).toContain('1000 bytes');
    await end();
  });
});

describe('over HTTP', () => {
  let listening: Listening | undefined;
  afterEach(async () => {
    await listening?.close();
    listening = undefined;
  });

  const post = ({ url }: Listening, body: unknown, headers: Record<string, string> = {}) =>
    fetch(url, { method: 'POST', headers: { ...HEADERS, ...headers }, body: JSON.stringify(body) });

  async function begin() {
    listening = await listen(registry);
    const response = await post(listening, INITIALIZE);
    await response.text();
    return { at: listening, session: { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' } };
  }

  test('progress is also sent for the token 0', async () => {
    const { at, session } = await begin();
    const answer = await post(at, callOf(2, 'echo', { _meta: { progressToken: 0 } }), session);
    expect(await answer.text()).toContain('"progressToken":0');
  });

  test.each(['PUT', 'PATCH', 'OPTIONS', 'HEAD'])(
    'the method %s is refused with 405, with a session and without',
    async (method) => {
      const { at, session } = await begin();
      for (const headers of [HEADERS, { ...HEADERS, ...session }]) {
        const response = await fetch(at.url, { method, headers });
        expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, POST, DELETE']);
      }
    },
  );

  test('a server that is closed while a session starts has no session afterwards', async () => {
    const request = { method: 'POST', headers: HEADERS, body: JSON.stringify(INITIALIZE) };
    for (let turns = 0; turns < 12; turns += 1) {
      const mcp = createMcpServer(registry);
      const beginning = mcp.fetch(new Request('http://localhost/mcp', request));
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      await mcp.close();
      await (await beginning).body?.cancel();
      expect(mcp.sessionCount).toBe(0);
    }
  });
});
