import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type Answer,
  Conversation,
  defineTool,
  type Hooks,
  InvalidOptionsError,
  keepRecent,
  type Message,
  resumeToolLoop,
  runToolLoop,
  type ToolDefinition,
  type ToolLoopConfig,
  ToolRegistry,
} from 'toolwright';
import { maskPatterns, PERSONAL_DATA } from 'toolwright/hooks';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { anyCharacter } from '../setup/any-character.js';

const ANN = 'ann@example.org';
const BOB = 'bob@example.org';

/** A tool that stores its arguments and returns them. */
function placing(options: Partial<ToolDefinition> = {}) {
  const got: unknown[] = [];
  const tool = defineTool({
    name: 'place_order',
    description: 'Places an order',
    parameters: {
      type: 'object',
      properties: { to: { type: 'string', format: 'email' }, note: {} },
    },
    execute: (args: object) => {
      got.push(structuredClone(args));
      return `placed for ${JSON.stringify(args)}`;
    },
    ...(options as object),
  }) as ToolDefinition;
  return { got, tool };
}

function placed(args: object, id = 'c1'): ScriptedStep {
  return { toolCalls: [{ id, name: 'place_order', arguments: args as Record<string, unknown> }] };
}

const user = (content: string): Message => ({ role: 'user', content });

async function run(
  steps: readonly ScriptedStep[],
  messages: readonly Message[],
  more: Partial<ToolLoopConfig> = {},
) {
  const provider = new ScriptedProvider([...steps, { content: 'Done.' }]);
  const { got, tool } = placing();
  const config = { provider, model: 'm', tools: [tool], hooks: [maskPatterns()], ...more };
  const result = await runToolLoop(config, messages);
  const sent = provider.requests.map((request) => JSON.stringify(request.messages));
  return { result, got, sent, answers: answersIn(result.messages) };
}

function answersIn(messages: readonly Message[]): readonly string[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

describe('masks are reversible within a run', () => {
  test('a mask in an argument is replaced by its value before validation, at any depth', async () => {
    const { got, sent } = await run(
      [placed({ to: '[email 1]', note: { lines: ['From [email 2] to [email 1].', 3] } })],
      [user(`Order for ${ANN}; bill ${BOB}. Again: ${ANN}`)],
    );
    expect(sent[0]).toContain('Order for [email 1]; bill [email 2]. Again: [email 1]');
    expect(got).toEqual([{ to: ANN, note: { lines: [`From ${BOB} to ${ANN}.`, 3] } }]);
    expect(sent.join()).not.toMatch(/@example/);
    // The address in the result gets the same mask again.
    expect(sent[1]).toContain('[email 2] to [email 1]');
  });

  test('a mask from a result can be used in the next call', async () => {
    const find = defineTool({ name: 'find', description: 'Finds', execute: () => `customer ${BOB}` });
    const { got, tool } = placing();
    const provider = new ScriptedProvider([
      { toolCalls: [{ id: 'f', name: 'find', arguments: {} }] },
      placed({ to: '[email 2]' }),
      { content: 'Done.' },
    ]);
    const tools = new ToolRegistry({ hooks: [maskPatterns()] }).register(find, tool);
    await runToolLoop({ provider, model: 'm', tools }, [user(`I am ${ANN}`)]);
    expect(got).toEqual([{ to: BOB }]);
    expect(JSON.stringify(provider.requests.map(({ messages }) => messages))).not.toMatch(/@example/);
  });

  test('an unknown mask is rejected with the name of the hook, and nothing runs', async () => {
    const { got, answers, result } = await run(
      [placed({ to: '[email 7]', note: ['[phone 1]'] })],
      [user(`I am ${ANN}`)],
    );
    expect(got).toEqual([]);
    expect(answers[0]).toContain("Validation failed for tool 'place_order':");
    expect(answers[0]).toContain("\n  - to: has [email 7], which the hook 'mask-patterns' cannot restore");
    expect(answers[0]).toContain("\n  - note.0: has [phone 1], which the hook 'mask-patterns'");
    expect(result.toolCalls[0]).toMatchObject({
      status: 'rejected',
      hooks: [{ did: 'refused', in: 'beforeCall' }],
    });
  });

  test('rawArguments and the history contain the mask instead of the value', async () => {
    const { result } = await run([placed({ to: '[email 1]' })], [user(`I am ${ANN}`)]);
    expect(result.toolCalls[0]?.rawArguments).toEqual({ to: '[email 1]' });
    const [call] = result.messages.flatMap((message) =>
      message.role === 'assistant' ? (message.tool_calls ?? []) : [],
    );
    expect(call?.function.arguments).toBe('{"to":"[email 1]"}');
  });
});

describe('a mask that the model spelled differently', () => {
  test.each(['[Email 1]', '[email1]', '[EMAIL 1]', '[email  1]', '[email-1]', '[email_1]'])(
    'as %s is restored',
    async (mask) => {
      const { got } = await run([placed({ to: mask, note: [`to ${mask}`] })], [user(`I am ${ANN}`)]);
      expect(got).toEqual([{ to: ANN, note: [`to ${ANN}`] }]);
    },
  );

  test('is rejected if it was never issued', async () => {
    const { got, answers } = await run([placed({ note: ['[Email-2]', '[PHONE1]'] })], [user(`I am ${ANN}`)]);
    expect(got).toEqual([]);
    expect(answers[0]).toContain(
      "\n  - note.0: has [Email-2], which the hook 'mask-patterns' cannot restore",
    );
    expect(answers[0]).toContain("\n  - note.1: has [PHONE1], which the hook 'mask-patterns' cannot restore");
  });

  test('is not changed if it was in an earlier message, and its number is not issued', async () => {
    const { got, sent } = await run(
      [placed({ to: '[email 2]', note: '[EMAIL-1]' })],
      [user(`Order for ${ANN}, and write [Email_1] into the note`)],
    );
    expect(sent[0]).toContain('Order for [email 2], and write [Email_1] into the note');
    expect(got).toEqual([{ to: ANN, note: '[EMAIL-1]' }]);
  });

  test('does not hide a value that looks like a mask', async () => {
    const patterns = [{ name: 'cus', pattern: /CUS-\d{6}/g }];
    const { got, sent } = await run([placed({ note: 'see [cus 1] and [[cus 1]]' })], [user('[CUS-123456]')], {
      hooks: [maskPatterns({ patterns })],
    });
    expect(sent[0]).toContain('[[cus 1]]');
    expect(got).toEqual([{ note: 'see CUS-123456 and [CUS-123456]' }]);
  });
});

describe('a mask in a key', () => {
  test('is restored as in a value', async () => {
    const { got } = await run(
      [placed({ note: { '[email 1]': ['[email 2]'], 'of [Email-2]': { other: 1 } } })],
      [user(`${ANN} and ${BOB}`)],
    );
    expect(got).toEqual([{ note: { [ANN]: [BOB], [`of ${BOB}`]: { other: 1 } } }]);
  });

  test('is rejected if it was never issued', async () => {
    const { got, answers } = await run([placed({ note: { '[email 7]': 1 } })], [user(`I am ${ANN}`)]);
    expect(got).toEqual([]);
    expect(answers[0]).toContain(
      "\n  - note.[email 7]: has [email 7], which the hook 'mask-patterns' cannot restore",
    );
  });

  test('is rejected if two keys would become equal', async () => {
    const notes = [{ '[email 1]': 1, '[Email 1]': 2 }, [{ '[email 1]': 1, [ANN]: 2 }]];
    for (const note of notes) {
      const { got, answers } = await run([placed({ note })], [user(`I am ${ANN}`)]);
      expect(got).toEqual([]);
      expect(answers[0]).toMatch(
        /\n {2}- note(\.0)?: has keys that the hook 'mask-patterns' would restore to the same key/,
      );
    }
  });

  test('is issued for a key in the arguments of an earlier call', async () => {
    const call = (args: object): Message => ({
      role: 'assistant',
      content: '',
      tool_calls: [
        { id: 'c0', type: 'function', function: { name: 'place_order', arguments: JSON.stringify(args) } },
      ],
    });
    const { got, sent } = await run(
      [placed({ note: { '[email 1]': '[email 2]' } })],
      [
        user('Order'),
        call({ note: { [ANN]: { name: BOB } } }),
        { role: 'tool', content: 'placed', tool_call_id: 'c0' },
        user('Once more'),
      ],
    );
    expect(sent.join()).not.toMatch(/@example/);
    expect(got).toEqual([{ note: { [ANN]: BOB } }]);
  });
});

test('any JSON that was sent masked is restored in a call that repeats it', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      ANN,
      BOB,
      '+49 30 901820',
      '192.168.0.17',
      '4111 1111 1111 1111',
      'DE89370400440532013000',
    ),
    fc.constantFrom(
      '[email 1]',
      '[Email-2]',
      '[phone]',
      '[ip1]',
      '[[',
      'n',
      '\\',
      '"',
      '\n',
      '\t',
      ', ',
      ' ',
    ),
    anyCharacter,
  );
  const text = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, text, tie('list'), tie('record')),
    list: fc.array(tie('value'), { maxLength: 3 }),
    record: fc.dictionary(text, tie('value'), { maxKeys: 3 }),
  }));
  await fc.assert(
    fc.asyncProperty(value, async (note) => {
      const echoed: ScriptedStep = ({ messages }) => {
        const [first] = messages;
        return {
          toolCalls: [{ id: 'c1', name: 'place_order', arguments: JSON.parse(String(first?.content)) }],
        };
      };
      const { got, sent } = await run([echoed], [user(JSON.stringify({ note }))]);
      expect(sent[0]).not.toMatch(/(ann|bob)@/);
      expect(got).toEqual([{ note }]);
    }),
    { numRuns: 300 },
  );
});

test('a value after a JSON escape is masked without the escape', async () => {
  const contact = defineTool({
    name: 'find',
    description: 'Finds',
    execute: () => ({ text: `Contact:\n${ANN}\n+49 30 901820\n@org.junit.Test` }),
  });
  const { tool, got } = placing();
  const { sent } = await run(
    [{ toolCalls: [{ id: 'f', name: 'find', arguments: {} }] }, placed({ to: '[email 1]' })],
    [user('Order')],
    { tools: [contact, tool] },
  );
  expect(sent[1]).toContain(
    JSON.stringify('Contact:\\n[email 1]\\n[phone 1]\\n@org.junit.Test').slice(1, -1),
  );
  expect(got).toEqual([{ to: ANN }]);
});

describe('text that already has the form of a mask', () => {
  test('is never issued as a mask and is not changed', async () => {
    const { got, sent } = await run(
      [placed({ to: '[email 2]', note: 'use [email 1]' })],
      [user(`Write [email 1] into the note, and order for ${ANN}`)],
    );
    expect(sent[0]).toContain('Write [email 1] into the note, and order for [email 2]');
    expect(got).toEqual([{ to: ANN, note: 'use [email 1]' }]);
  });

  test('does not become known because the model invented it', async () => {
    const { got, answers } = await run(
      [placed({ note: '[email 1]' }), placed({ note: 'again [email 1]' }, 'c2')],
      [user('Order')],
    );
    expect(got).toEqual([]);
    expect(answers).toHaveLength(2);
  });

  test('without a number is not changed, unless results are masked permanently', async () => {
    const template = [user('Save the template: Dear [name], [email]')];
    expect((await run([placed({ note: 'Dear [name], [email]' })], template)).got).toHaveLength(1);
    const { got, answers } = await run(
      [placed({ note: ANN }), placed({ note: '[email]' }, 'c2')],
      [user('Go')],
      { hooks: [maskPatterns({ in: ['requests', 'results'] })] },
    );
    expect(got).toEqual([{ note: ANN }]);
    expect(answers[0]).toBe('placed for {"note":"[email]"}');
    expect(answers[1]).toContain("\n  - note: has [email], which the hook 'mask-patterns' cannot restore");
  });

  test('may match a digit pattern', async () => {
    const patterns = [...PERSONAL_DATA, { name: 'number', pattern: /\d+/g }];
    const { sent, got } = await run([placed({ note: '[email 1] has [number 1]' })], [user(`${ANN} has 12`)], {
      hooks: [maskPatterns({ patterns })],
    });
    expect(sent[0]).toContain('[email 1] has [number 1]');
    expect(got).toEqual([{ note: `${ANN} has 12` }]);
  });
});

describe('masks follow from the history', () => {
  test('of a suspended run, in another process', async () => {
    const { got, tool } = placing({ approval: true });
    const config = (steps: readonly ScriptedStep[]): ToolLoopConfig => ({
      provider: new ScriptedProvider(steps),
      model: 'm',
      tools: [tool],
      hooks: [maskPatterns()],
    });
    const first = await runToolLoop(config([placed({ to: '[email 2]' })]), [user(`${ANN} and ${BOB}`)]);
    expect(first.pending).toMatchObject([{ arguments: { to: BOB } }]);
    const answers = (first.pending ?? []).map(({ id }): Answer => ({ id, approved: true }));
    const state = JSON.parse(JSON.stringify(first.state));
    const later = config([placed({ to: '[email 1]' }, 'c2')]);
    const second = await resumeToolLoop(later, state, answers);
    expect(second.pending).toMatchObject([{ arguments: { to: ANN } }]);
    expect(got).toEqual([{ to: BOB }]);
  });

  test('even if requests contain only its end', async () => {
    const history: Message[] = [
      user(`I am ${ANN}`),
      { role: 'assistant', content: 'Hello [email 1]' },
      user(`Bill ${BOB}`),
    ];
    const { got, sent } = await run([placed({ to: '[email 2]', note: 'for [email 1]' })], history, {
      compactHistory: keepRecent({ turns: 1 }),
    });
    expect(sent[0]).toContain('Bill [email 2]');
    expect(sent[0]).not.toContain('[email 1]');
    expect(got).toEqual([{ to: BOB, note: `for ${ANN}` }]);
  });

  test('across the turns of a conversation, and masks of removed messages cannot be restored', async () => {
    const { got, tool } = placing();
    const provider = new ScriptedProvider([
      { content: 'Hello [email 1]' },
      placed({ to: '[email 1]' }),
      { content: 'Done' },
      placed({ to: '[email 1]' }, 'c2'),
      { content: 'Done' },
    ]);
    const conversation = new Conversation({ provider, model: 'm', tools: [tool], hooks: [maskPatterns()] });
    await conversation.prompt(`I am ${ANN}`);
    await conversation.prompt('Order');
    expect(got).toEqual([{ to: ANN }]);
    await conversation.editHistory(() => [{ role: 'assistant', content: 'Hello [email 1]' }]);
    await conversation.prompt(`Now for ${BOB}`);
    expect(JSON.stringify(provider.requests.at(-1)?.messages)).toContain('Now for [email 2]');
    expect(got).toEqual([{ to: ANN }]);
    expect(answersIn(conversation.messages).at(-1)).toContain('has [email 1], which the hook');
  });
});

test('outside of runs, results are masked permanently and arguments are not changed', async () => {
  const { got, tool } = placing();
  const tools = new ToolRegistry({ hooks: [maskPatterns()] }).register(tool);
  expect((await tools.execute('place_order', { to: ANN, note: '[email 7]' })).forLLM).toBe(
    'placed for {"to":"[email]","note":"[email 7]"}',
  );
  expect(got).toEqual([{ to: ANN, note: '[email 7]' }]);
});

describe('a hook that rejects arguments', () => {
  const rejecting = (faults: unknown): Hooks => ({ name: 'strict', beforeCall: () => ({ faults }) as never });

  test('reports its faults as validation errors', async () => {
    const { answers, got } = await run([placed({ note: 1 })], [user('Go')], {
      hooks: [rejecting([{ path: 'note', message: 'must be polite' }])],
    });
    expect(answers[0]).toContain('\n  - note: must be polite');
    expect(got).toEqual([]);
  });

  test('with invalid faults has failed', async () => {
    const { answers } = await run([placed({ note: 1 })], [user('Go')], { hooks: [rejecting(['note'])] });
    expect(answers[0]).toContain("the hook 'strict' failed");
    expect(() => maskPatterns({ in: 'requests' as never })).toThrow(InvalidOptionsError);
  });
});
