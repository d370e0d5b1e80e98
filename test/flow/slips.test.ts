import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  type Answer,
  Args,
  agentAsTool,
  answerWait,
  Conversation,
  complete,
  defineTool,
  discoverTools,
  InvalidOptionsError,
  type LoopGuardOptions,
  type Message,
  Param,
  resumeToolLoop,
  runToolLoop,
  Tool,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { createAgent } from 'toolwright/agent';
import { createChatHandler } from 'toolwright/chat';
import { OpenAIProvider } from 'toolwright/openai';
import { SatelliteClient } from 'toolwright/satellite';
import { MemoryRunStore } from 'toolwright/stores';
import { ScriptedProvider } from 'toolwright/testing';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];

/** The message of the InvalidOptionsError that this throws. */
async function told(mistake: () => unknown): Promise<string> {
  try {
    await mistake();
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidOptionsError);
    return (error as InvalidOptionsError).message;
  }
  throw new Error('nothing was thrown');
}

describe('a URL', () => {
  const saved = { ...process.env };
  beforeEach(() => {
    delete process.env.OPENAI_API_KEY;
    delete process.env.OPENAI_BASE_URL;
  });
  afterEach(() => {
    process.env = { ...saved };
  });

  test.each([
    'localhost:11434/v1',
    '127.0.0.1/v1',
    '',
    'ftp://127.0.0.1/v1',
    '/v1',
    'http:///v1',
    'http:// a',
  ])('of OpenAIProvider that is %j is refused, from the option or the environment', async (baseURL) => {
    expect(await told(() => new OpenAIProvider({ baseURL }))).toContain(`baseURL is '${baseURL}'`);
    process.env.OPENAI_BASE_URL = baseURL;
    if (baseURL !== '')
      expect(await told(() => new OpenAIProvider())).toContain(`OPENAI_BASE_URL is '${baseURL}'`);
  });

  test('that is missing beside the API key is not reported, only the key is', async () => {
    expect(await told(() => new OpenAIProvider())).toContain('there is no API key');
  });
});

describe('headers', () => {
  const makers = {
    OpenAIProvider: (headers: never) => new OpenAIProvider({ apiKey: 'k', headers }),
    SatelliteClient: (headers: never) =>
      new SatelliteClient({ url: 'http://127.0.0.1:1', tools: new ToolRegistry(), headers }),
  };
  test.each(Object.entries(makers))(
    'of %s that are invalid are reported by name, without values',
    async (_, make) => {
      const headers = {
        ok: 'fine',
        'x-team': undefined,
        'x-no': 7,
        'not a name': 's3cr3t',
        'x-two': 's3cr3t\nlines',
      };
      const message = await told(() => make(headers as never));
      for (const name of ['x-team', 'x-no', 'not a name', 'x-two']) expect(message).toContain(`'${name}'`);
      expect(message).not.toContain("'ok'");
      expect(message).not.toContain('s3cr3t');
    },
  );
});

test('discoverTools refuses all invalid options of @Args and @Param together', () => {
  class Dto {}
  @Toolset()
  class Tools {
    @Tool('Creates')
    create(@Args({ group: ['create'] } as never) _dto: Dto) {}
    @Tool('Updates')
    update(@Args({ groups: 'update' } as never) _dto: Dto) {}
    @Tool('Finds')
    find(@Param(5 as never) _id: string) {}
  }
  expect(() => discoverTools({ toolsets: [Tools] })).toThrow(
    /3 mistakes[\s\S]*did you mean `groups`[\s\S]*groups is 'update'[\s\S]*description is 5/,
  );
});

describe('loopGuard', () => {
  const run = (loopGuard: LoopGuardOptions) =>
    runToolLoop({ provider: new ScriptedProvider([{ content: 'Hi' }]), model: 'm', loopGuard }, hello);

  test('with a tellAt above endAt is refused', async () => {
    expect(await told(() => run({ tellAt: 9, endAt: 6 }))).toContain(
      'loopGuard.tellAt is 9, but the run ends at 6 repeats',
    );
  });

  test.each([
    { tellAt: 6, endAt: 6 },
    { tellAt: Number.POSITIVE_INFINITY, endAt: 6 },
    { tellAt: 9 },
    { endAt: 1 },
  ])('%j is accepted', async (guard) => {
    expect((await run(guard)).status).toBe('completed');
  });
});

describe('an option of another framework', () => {
  const base = { provider: new ScriptedProvider([{ content: 'Hi' }]), model: 'm' };
  const functions = {
    runToolLoop: (wrong: object) => runToolLoop({ ...base, ...wrong }, hello),
    Conversation: (wrong: object) => new Conversation({ ...base, ...wrong }),
    agentAsTool: (wrong: object) => agentAsTool({ ...base, name: 'a', description: 'A', ...wrong } as never),
    createAgent: (wrong: object) => createAgent({ ...base, ...wrong }),
    createChatHandler: (wrong: object) =>
      createChatHandler({
        ...base,
        authenticate: () => 'u1',
        store: new MemoryRunStore(),
        ...wrong,
      } as never),
    complete: (wrong: object) => complete(base, { messages: hello, ...wrong }),
  };

  test.each(Object.entries(functions))(
    'is refused by %s, which names its own option',
    async (functionName, call) => {
      const isLoop = functionName === 'runToolLoop';
      const prompt = isLoop ? "a first message { role: 'system', content: '…' }" : 'systemPrompt: a string';
      for (const name of ['system', 'instructions'])
        expect(await told(() => call({ [name]: 'Be brief.' }))).toMatch(
          new RegExp(`${name} is not an option[^\\n]*\\n   Write instead: ${prompt}`),
        );
      if (functionName === 'complete') return;
      for (const name of ['stopWhen', 'maxSteps', 'maxTurns'])
        expect(await told(() => call({ [name]: 3 }))).toMatch(
          new RegExp(`${name} is not an option[^\\n]*\\n   Write instead: maxIterations: a whole number`),
        );
    },
  );
});

describe('ScriptedProvider', () => {
  test.each<[object, string]>([
    [{ tolCalls: [] }, 'did you mean `toolCalls`?'],
    [{ toolCalls: [{ name: 'a', args: {} }] }, 'arguments: { … }'],
    [{ toolCalls: [{ nam: 'a' }] }, 'did you mean `toolCalls[0].name`?'],
    [{ toolCalls: ['a'] }, "toolCalls[0] is 'a'"],
  ])('refuses the reply %j, also from a function', async (reply, hint) => {
    expect(await told(() => new ScriptedProvider([reply]))).toContain(hint);
    const provider = new ScriptedProvider([{ content: 'first' }, () => reply]);
    await provider.chat({ model: 'm', messages: [], options: {} });
    const message = await told(() => provider.chat({ model: 'm', messages: [], options: {} }));
    expect(message).toContain(hint);
    expect(message).toContain('reply #1');
  });
});

describe('an answer', () => {
  const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
  const script = [{ toolCalls: [{ id: 'c1', name: 'pay' }] }, { content: 'Done.' }];
  const config = () => ({ provider: new ScriptedProvider(script), model: 'm', tools: [pay] });

  test.each<[object, string]>([
    [{ approved: false, reson: 'too much' }, '`reason`'],
    [{ aproved: true }, '`approved`'],
    [{ valu: 1 }, 'write value: the answer to the question'],
    [{ reslt: 1 }, 'write result: the result of the call'],
    [{ approved: true, argumnts: {} }, 'write arguments: the edited arguments'],
    [{ approved: true, rember: {} }, "write remember: { scope: 'conversation' }"],
    [{ approved: true, answeredBy: 'Anna' }, 'in the last argument of the resume'],
  ])('%j is refused with the right name', async (answer, hint) => {
    const run = await runToolLoop(config(), hello);
    const [{ id } = { id: '' }] = run.pending ?? [];
    const resumed = resumeToolLoop(config(), run.state, [{ id, ...answer } as Answer]);
    await expect(resumed).rejects.toMatchObject({
      name: 'InvalidAnswer',
      message: expect.stringContaining(hint),
    });
    const answered = answerWait(
      { wait: { kind: 'approval', index: 0 }, journal: {} as never },
      answer as never,
    );
    expect(answered).toMatchObject({ ok: false, problem: expect.stringContaining(hint) });
  });

  test('may contain all fields of its pending call', async () => {
    const run = await runToolLoop(config(), hello);
    const answers = (run.pending ?? []).map((pending) => ({ ...pending, approved: true }));
    const provider = new ScriptedProvider([{ content: 'Done.' }]);
    const done = await resumeToolLoop({ ...config(), provider }, run.state, answers);
    expect(done).toMatchObject({ status: 'completed', content: 'Done.' });
  });

  test.each([
    [{ answerdBy: 'Anna' }, 'did you mean `answeredBy`?'],
    [{ scop: {} }, 'did you mean `scope`?'],
    [{ chanel: 'web' }, 'did you mean `channel`?'],
  ])('to a resume with the option %j is refused with the right name', async (options, hint) => {
    const run = await runToolLoop(config(), hello);
    expect(await told(() => resumeToolLoop(config(), run.state, [], options as never))).toContain(hint);
  });
});

describe('a message', () => {
  const call = { id: 'c1', type: 'function', function: { name: 'a', arguments: '{}' } };
  test.each<[object, string]>([
    [{ role: 'assistant', content: '', toolCalls: [call] }, '`tool_calls`'],
    [{ role: 'assistant', content: 'x', toolcalls: [call] }, '`tool_calls`'],
    [{ role: 'tool', content: 'x', toolCallId: 'c1' }, '`tool_call_id`'],
    [{ role: 'user', contents: 'x' }, '`content`'],
  ])('%j is refused with the right key', async (message, hint) => {
    const config = { provider: new ScriptedProvider([]), model: 'm' };
    const messages = [message as Message];
    for (const ask of [() => runToolLoop(config, messages), () => complete(config, { messages })])
      expect(await told(ask)).toContain(`did you mean ${hint}?`);
  });

  test('may have additional provider keys', async () => {
    const provider = new ScriptedProvider([{ content: 'Hi' }]);
    const own = {
      reasoning_content: 'so',
      refusal: null,
      audio: null,
      context: 'x',
      cache_control: {},
      id: 'm1',
    };
    const messages = [...hello, { role: 'assistant', content: 'x', ...own }, ...hello] as Message[];
    await runToolLoop({ provider, model: 'm' }, messages);
    expect(provider.requests[0]?.messages).toEqual(messages);
  });
});
