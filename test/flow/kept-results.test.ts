import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  Conversation,
  Conversations,
  defineTool,
  type LLMRequest,
  resumeToolLoop,
  runToolLoop,
  type ToolLoopConfig,
  ToolRegistry,
} from 'toolwright';
import { markUntrusted, maskPatterns } from 'toolwright/hooks';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const hello = [{ role: 'user', content: 'Hello' }] as const;

const orders = Array.from({ length: 5_000 }, (_, id) => ({
  id,
  status: id % 7 === 0 ? 'open' : 'paid',
  total: id * 3,
  customer: { name: `Customer ${id}`, note: id === 4_321 ? 'the NEEDLE is here' : '😀' },
}));
const json = JSON.stringify({ orders, total: 5_000 });
const prose = Array.from({ length: 9_000 }, (_, line) => `line ${line + 1} 😀 of the log`).join('\n');

function giving(value: unknown, name = 'look') {
  return defineTool({ name, description: 'Looks', parameters: {}, execute: () => value });
}

function calling(name: string, args: object, id = 'c1'): ScriptedStep {
  return { toolCalls: [{ id, name, arguments: args as Record<string, unknown> }] };
}

function answers(
  messages: readonly { readonly role: string; readonly content: unknown }[],
): readonly string[] {
  return messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []));
}

function handleIn(messages: readonly object[]): string {
  const kept = messages.map((message) => (message as { readonly kept?: string }).kept).find(Boolean);
  return String(kept);
}

/** A run that gets a large result and then reads parts of it. */
async function reading(value: unknown, parts: readonly object[], more: Partial<ToolLoopConfig> = {}) {
  const reads = parts.map(
    (part, index): ScriptedStep =>
      ({ messages }) =>
        calling('read_result', { handle: handleIn(messages), ...part }, `r${index}`) as never,
  );
  const provider = new ScriptedProvider([calling('look', {}), ...reads, { content: 'Done' }]);
  const config: ToolLoopConfig = {
    provider,
    model: 'm',
    tools: [giving(value)],
    store: new MemoryRunStore(),
    ...more,
  };
  const run = await runToolLoop(config, hello, { owner: { user: 'u1' } });
  expect(run.content).toBe('Done');
  expect(historyFaults(run.messages)).toEqual([]);
  return { run, provider, texts: answers(run.messages) };
}

describe('runToolLoop with a store and a large result', () => {
  test('gives the model the first complete values, the shape of the whole, and a handle', async () => {
    const { run, provider, texts } = await reading(JSON.parse(json), []);
    const text = texts[0] ?? '';
    expect(text.length).toBeLessThan(34_000);
    const [head = '', note = ''] = text.split('\n[');
    const shown = JSON.parse(head) as { readonly orders: readonly unknown[] };
    expect(shown.orders).toEqual(orders.slice(0, shown.orders.length));
    expect(note).toContain(`All ${json.length} characters are stored`);
    expect(note).toContain('a list of 5000 × { id: number, status: string, total: number');
    expect(note).toMatch(/res_[\w-]{16}/);
    expect(run.toolCalls[0]?.result.details).toEqual({
      kept: { handle: handleIn(run.messages), characters: json.length },
    });
    // read_result is offered from then on, after the other tools.
    const names = provider.requests.map(({ tools = [] }: LLMRequest) =>
      tools.map((tool) => tool.function.name),
    );
    expect(names).toEqual([['look'], ['look', 'read_result']]);
  });

  test('read_result returns characters, lines, the value at a path, and search results', async () => {
    const { texts } = await reading(JSON.parse(json), [
      { from: 32_000, count: 100 },
      { path: 'orders[4321].customer' },
      { path: '$.orders', from: 10, count: 2 },
      { path: 'orders', from: 4_999 },
      { search: 'needle' },
      { path: 'orders.constructor' },
      { path: 'total' },
    ]);
    const [, characters = '', customer, some = '', last = '', search, nothing, total] = texts;
    expect(characters.split('\n[')[0]).toBe(json.slice(32_000, 32_100));
    expect(characters).toContain('continue with "from": 32100');
    expect(JSON.parse(String(customer))).toEqual(orders[4_321]?.customer);
    expect(JSON.parse(some.split('\n[')[0] ?? '')).toEqual(orders.slice(10, 12));
    expect(JSON.parse(last.split('\n[')[0] ?? '')).toEqual([orders[4_999]]);
    expect(search).toContain('the NEEDLE is here');
    expect(search).toContain('1 of 1 matches');
    expect(nothing).toContain('There is nothing at orders.constructor');
    expect(total).toBe('5000');
    const lines = await reading(prose, [
      { line: 8_999 },
      { line: 9_001 },
      { path: 'a' },
      { search: 'line 77 ' },
    ]);
    expect(lines.texts[1]).toBe(
      'line 8999 😀 of the log\nline 9000 😀 of the log\n[lines 8999 to 9000 of 9000]',
    );
    expect(lines.texts[2]).toContain('9000 lines');
    expect(lines.texts[3]).toContain('not JSON');
    expect(lines.texts[4]).toContain('line 77 ');
  });

  test('finds no handle of another run, of another owner, or that does not exist', async () => {
    const store = new MemoryRunStore();
    const { run } = await reading(prose, [], { store });
    const handle = handleIn(run.messages);
    const provider = new ScriptedProvider([
      calling('look', {}),
      calling('read_result', { handle }, 'r1'),
      calling('read_result', { handle: 'res_0000000000000000' }, 'r2'),
      calling('read_result', {}, 'r3'),
      { content: 'Done' },
    ]);
    const tools = [giving(prose)];
    const other = await runToolLoop({ provider, model: 'm', tools, store, runId: 'another' }, hello, {
      owner: { user: 'u1' },
    });
    const [, foreign, unknown, missing] = answers(other.messages);
    expect(foreign).toContain('There is no result');
    expect(unknown).toContain('There is no result');
    expect(missing).toContain('handle');
  });

  test('hooks mask and mark parts that are read later in the same way', async () => {
    const text = `${prose}\nThe end, by eve@example.org.`;
    for (const openWorld of [true, false]) {
      const look = { ...giving(text), annotations: { openWorld } };
      const { texts } = await reading(text, [{ search: 'The end' }, { line: 2, count: 1 }], {
        tools: [look],
        hooks: [maskPatterns({ in: ['results'] }), markUntrusted()],
      });
      for (const told of texts) expect(/^<untrusted-/.test(told)).toBe(openWorld);
      expect(texts[1]).toContain('The end');
      expect(texts.join('')).not.toContain('eve@example.org');
    }
  });

  test('read_result works after the run was resumed in another process', async () => {
    const store = new MemoryRunStore();
    const ask = defineTool({
      name: 'ask',
      description: 'Asks',
      parameters: {},
      approval: true,
      execute: () => 'yes',
    });
    const tools = [giving(prose), ask];
    const first = new ScriptedProvider([calling('look', {}), calling('ask', {}, 'c2')]);
    const run = await runToolLoop({ provider: first, model: 'm', tools, store }, hello);
    expect(run.status).toBe('suspended');
    const state = JSON.parse(JSON.stringify(run.state));
    // The stored text is not part of the state.
    expect(JSON.stringify(state).length).toBeLessThan(100_000);
    const second = new ScriptedProvider([
      ({ messages }) => calling('read_result', { handle: handleIn(messages), line: 5 }, 'r1') as never,
      { content: 'Done' },
    ]);
    const config = { provider: second, model: 'm', tools, store };
    const resumed = await resumeToolLoop(config, state, [
      { id: String(run.pending?.[0]?.id), approved: true },
    ]);
    expect(answers(resumed.messages).at(-1)).toContain('line 5 ');
    expect(second.requests[0]?.tools?.map((tool) => tool.function.name)).toEqual([
      'look',
      'ask',
      'read_result',
    ]);
  });

  test('truncates at its limit, at 100,000 characters without a store, and if the store fails', async () => {
    const length = async (more: Partial<ToolLoopConfig>): Promise<number> => {
      const { texts } = await reading('x'.repeat(200_000), [], more);
      return (texts[0] ?? '').indexOf('\n[');
    };
    expect(await length({})).toBe(32_000);
    expect(await length({ maxResultChars: 50_000 })).toBe(50_000);
    expect(await length({ store: undefined })).toBe(100_000);
    expect(
      await length({
        tools: new ToolRegistry({ maxResultChars: 60_000 }).register(giving('x'.repeat(200_000))),
      }),
    ).toBe(60_000);
    const store = new MemoryRunStore();
    Object.assign(store.results, { keepResult: () => Promise.reject(new Error('full')) });
    const silent = { debug() {}, info() {}, warn() {}, error() {} };
    const { texts } = await reading('x'.repeat(200_000), [], { store, logger: silent });
    expect(texts[0]).toMatch(/x\n\[168000 more characters were cut off\]$/);
  });

  test('does not replace an application tool named read_result', async () => {
    const own = giving('mine', 'read_result');
    const provider = new ScriptedProvider([
      calling('look', {}),
      calling('read_result', {}, 'c2'),
      { content: 'Done' },
    ]);
    const tools = [giving(prose), own];
    const run = await runToolLoop({ provider, model: 'm', tools, store: new MemoryRunStore() }, hello);
    expect(answers(run.messages)[1]).toBe('mine');
    expect(answers(run.messages)[0]).not.toContain('kept');
  });
});

describe('ToolRegistry with files in texts', () => {
  const picture = Buffer.from(Array.from({ length: 6_000 }, (_, index) => (index * 7919) % 251)).toString(
    'base64',
  );
  const run = (value: unknown) => new ToolRegistry().register(giving(value)).execute('look');

  test('converts images to parts, and replaces other files with notes', async () => {
    const value = {
      avatar: `data:image/png;base64,${picture}`,
      invoice: `data:application/pdf;base64,${picture}`,
      raw: picture,
    };
    const result = await run(value);
    expect(JSON.parse(result.forLLM)).toEqual({
      avatar: '[image-1: image/png, 6000 bytes]',
      invoice: '[application/pdf, 6000 bytes of Base64 left out]',
      raw: '[6000 bytes of Base64 left out]',
    });
    // The application receives the whole text in details.
    expect(result.details).toEqual({ full: JSON.stringify(value) });
    expect(result.content?.filter(({ type }) => type === 'image')).toEqual([
      { type: 'image', mimeType: 'image/png', data: picture },
    ]);
  });

  test('stores the whole text if the run has a store', async () => {
    const text = `A picture: data:image/png;base64,${picture} and its file ${picture}.`;
    const store = new MemoryRunStore();
    const { texts } = await reading(text, [{ search: 'its file' }], { store });
    expect(texts[0]).toMatch(
      /^A picture: \[image-1: image\/png, 6000 bytes\] and its file \[6000 bytes of Base64 left out\]\./,
    );
    expect(texts[1]).toContain('its file');
    expect(texts[1]).not.toContain(picture.slice(0, 300));
    expect(texts[0]).toContain(`All ${text.length} characters are stored`);
  });

  test('truncates millions of characters without a space, and removes files between words', async () => {
    const endless = await run('a'.repeat(8_000_000));
    expect(endless).toMatchObject({ isError: false });
    expect(endless.forLLM.length).toBeLessThan(101_000);
    const file = Buffer.alloc(6_000_000, picture).toString('base64');
    expect((await run(`before ${file} after`)).forLLM).toBe(
      'before [6000000 bytes of Base64 left out] after',
    );
    const url = `data:application/zip;base64,${file}`;
    expect((await run(`${url},${picture}==x`)).forLLM).toBe(
      '[application/zip, 6000000 bytes of Base64 left out],[6000 bytes of Base64 left out]x',
    );
    expect((await run('ab1 '.repeat(20_000))).forLLM).toBe('ab1 '.repeat(20_000));
  });

  test('does not treat long words as files', async () => {
    const long = 'a'.repeat(5_000);
    expect((await run(long)).forLLM).toBe(long);
    expect((await run(`${'word '.repeat(2_000)}`)).forLLM).toBe('word '.repeat(2_000));
  });
});

const whole = (text: string): boolean => text.isWellFormed();

test('ToolRegistry never shows half a character or half a JSON value, at any limit', async () => {
  const value = fc.oneof(
    { weight: 3, arbitrary: fc.jsonValue({ maxDepth: 4 }) },
    { weight: 1, arbitrary: fc.string({ unit: 'grapheme', maxLength: 80 }) },
    {
      weight: 2,
      arbitrary: fc.array(
        fc.record({ id: fc.bigInt(0n, 10n ** 20n), text: fc.string({ unit: 'grapheme' }) }),
      ),
    },
  );
  await fc.assert(
    fc.asyncProperty(value, fc.integer({ min: 2, max: 120 }), async (given, maxResultChars) => {
      const text =
        typeof given === 'string'
          ? given
          : JSON.stringify(given, (_key, item) => (typeof item === 'bigint' ? `${item}` : item));
      const result = await new ToolRegistry({ maxResultChars }).register(giving(text)).execute('look');
      expect(whole(result.forLLM) || !whole(text)).toBe(true);
      if (text.length <= maxResultChars) return;
      const [, head = '', missing] =
        /^([\s\S]*)\n\[(\d+) more characters were cut off\]$/.exec(result.forLLM) ?? [];
      expect(head.length).toBeLessThanOrEqual(maxResultChars);
      if (!/^[[{]/.test(text)) expect(head).toBe(text.slice(0, text.length - Number(missing)));
      else {
        expect(() => JSON.parse(head)).not.toThrow();
        const shown = text.slice(0, text.length - Number(missing));
        expect(head.startsWith(shown)).toBe(true);
        expect(head.slice(shown.length)).toMatch(/^[\]}]*$/);
      }
    }),
  );
});

test('read_result returns a whole text piece by piece, and never half a character', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: fc.constantFrom('a', '😀', 'é', '\n', '"'), minLength: 60, maxLength: 200 }),
      fc.integer({ min: 7, max: 40 }),
      async (text, count) => {
        fc.pre(!/^\s*[[{]/.test(text));
        const pieces: string[] = [];
        let next: number | undefined = 0;
        const read: ScriptedStep = ({ messages }) => {
          const last = answers(messages as never).at(-1) ?? '';
          const [, piece = '', from] =
            /^([\s\S]*)\n\[characters \d+ to \d+ of \d+(?:; continue with "from": (\d+))?\]$/.exec(last) ??
            [];
          if (pieces.length > 0 || messages.length > 3) {
            pieces.push(piece);
            next = from === undefined ? undefined : Number(from);
          }
          if (next === undefined) return { content: 'Done' };
          return calling(
            'read_result',
            { handle: handleIn(messages), from: next, count },
            `r${pieces.length}`,
          ) as never;
        };
        const steps = [calling('look', {}), ...Array.from({ length: 80 }, () => read)];
        const config = {
          provider: new ScriptedProvider(steps),
          model: 'm',
          tools: [giving(text)],
          maxResultChars: 50,
        };
        const more = { store: new MemoryRunStore(), maxIterations: 90, loopGuard: false } as const;
        const run = await runToolLoop({ ...config, ...more }, hello);
        expect(run.content).toBe('Done');
        expect(pieces.join('')).toBe(text);
        for (const answer of answers(run.messages)) expect(answer.isWellFormed()).toBe(true);
      },
    ),
    { numRuns: 40 },
  );
});

describe('a large result of a turn', () => {
  const read: ScriptedStep = ({ messages }) =>
    calling('read_result', { handle: handleIn(messages), search: 'NEEDLE' }, 'r1') as never;
  const setUp = () => {
    const provider = new ScriptedProvider([
      calling('look', {}),
      { content: 'Looked' },
      read,
      { content: 'Found' },
    ]);
    const store = new MemoryRunStore();
    return { store, config: { provider, model: 'm', tools: [giving(JSON.parse(json))] } };
  };
  const scope = { owner: { user: 'u1' } };

  test('is read in a later turn of a Conversation', async () => {
    const { store, config } = setUp();
    const conversation = new Conversation({ ...config, store, scope });
    await conversation.prompt('Look');
    const { messages } = await conversation.prompt('Where is the needle?');
    expect(answers(messages).at(-1)).toContain('the NEEDLE is here');
  });

  test('is read in a later turn of Conversations, until the conversation is deleted', async () => {
    const { store, config } = setUp();
    const conversations = new Conversations({ store, config });
    for (const text of ['Look', 'Where is the needle?']) {
      await conversations.prompt('c', text, scope);
      await conversations.idle('c');
    }
    const { messages = [] } = (await conversations.snapshot('c')) ?? {};
    expect(answers(messages).at(-1)).toContain('the NEEDLE is here');
    const key = { runId: 'c.0', handle: handleIn(messages), owner: '{"user":"u1"}' };
    expect(store.results.readResult(key)).toContain('the NEEDLE is here');
    await conversations.delete('c');
    expect(store.results.readResult(key)).toBeUndefined();
    await conversations.close();
  });
});
