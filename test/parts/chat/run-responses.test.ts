import { describe, expect, test } from '@jest/globals';
import type { UIMessage } from 'ai';
import {
  type CallScope,
  defineTool,
  type LLMProvider,
  type LLMRequest,
  type Message,
  type RunState,
  streamResumedToolLoop,
  streamToolLoop,
  type ToolLoopStream,
} from 'toolwright';
import {
  agUiAnswers,
  createChatHandler,
  toAgUiResponse,
  toUIMessageResponse,
  uiMessageAnswers,
} from 'toolwright/chat';
import { MemoryRunStore } from 'toolwright/stores';
import { AgUiUser } from './ag-ui-reader.js';
import { chatOf, readMessage, said } from './chat-reader.js';

const placed: string[] = [];
const TOOLS = [
  defineTool({
    name: 'place',
    description: 'Places',
    approval: true,
    execute: () => `placed ${placed.push('once')}`,
  }),
  defineTool({ name: 'look', description: 'Looks', execute: () => 'seen' }),
];

/** Calls what the user names after `call`; its error contains secrets. */
const provider: LLMProvider = {
  chat: () => Promise.reject(new Error('only streams')),
  async *stream({ messages, signal }) {
    const last = messages.at(-1);
    const text = String(last?.content);
    if (text === 'fail') throw new Error('the password is 1234');
    if (text === 'hang') {
      yield { type: 'text-delta', text: 'wait' };
      await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    }
    const names = last?.role === 'user' && text.startsWith('call ') ? text.slice(5).split(' ') : [];
    const toolCalls = names.map((name, index) => ({ id: `c${index}`, name, arguments: {} }));
    const content = names.length > 0 ? '' : `heard: ${text}`;
    if (content) yield { type: 'text-delta', text: content };
    yield { type: 'response', response: { content, toolCalls, finishReason: 'stop' } };
  },
};

const CONFIG = { provider, model: 'm', tools: TOOLS, providerRetries: 0 } as const;

const run = (content: string, scope: CallScope = {}): ToolLoopStream =>
  streamToolLoop(CONFIG, [{ role: 'user', content }] as Message[], scope);

describe('toUIMessageResponse', () => {
  test('streams a run for the AI SDK, and a resumed run as more of the same message', async () => {
    const first = run('call place look');
    const asked = await readMessage(toUIMessageResponse(first));
    expect(asked.violations).toEqual([]);
    expect(asked.message?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-place', state: 'approval-requested' },
      { type: 'tool-look', state: 'output-available', output: 'seen' },
    ]);
    const parts = asked.message?.parts.map((part) =>
      'approval' in part
        ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } }
        : part,
    );
    const answered = { ...asked.message, parts } as UIMessage;
    const { state, pending = [] } = await first.result;
    const answers = uiMessageAnswers(answered, pending);
    expect(answers).toEqual([{ id: pending[0]?.id, approved: true }]);
    const more = streamResumedToolLoop(CONFIG, state as RunState, answers);
    const done = await readMessage(toUIMessageResponse(more, { messageId: answered.id }), answered);
    expect(done.violations).toEqual([]);
    expect(done.message?.id).toBe(asked.message?.id);
    expect(done.message?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'tool-place', state: 'output-available', output: expect.stringContaining('placed') },
      { type: 'tool-look', state: 'output-available' },
      { type: 'step-start' },
      { type: 'text', text: 'heard: seen' },
    ]);
  });

  test('hides the cause of a failed run, unless `describeError` returns it', async () => {
    const quiet = await readMessage(toUIMessageResponse(run('fail')));
    expect(quiet.chunks).toContainEqual({ type: 'error', errorText: 'An error occurred.' });
    expect(JSON.stringify(quiet.chunks)).not.toContain('1234');
    const told = toUIMessageResponse(run('fail'), { describeError: ({ name }) => String(name) });
    expect((await readMessage(told)).chunks).toContainEqual({ type: 'error', errorText: 'ProviderFailed' });
    const wrong = streamToolLoop({ ...CONFIG, maxIteration: 3 } as never, [{ role: 'user', content: 'Hi' }]);
    const { chunks, violations } = await readMessage(toUIMessageResponse(wrong));
    expect(violations).toEqual([]);
    expect(chunks.map(({ type }) => type)).toEqual(['start', 'error', 'finish']);
  });

  test('aborts the run if the reader disconnects', async () => {
    const hanging = run('hang');
    const reader = toUIMessageResponse(hanging).body?.getReader();
    for (let text = ''; !text.includes('wait'); )
      text += new TextDecoder().decode((await reader?.read())?.value);
    await reader?.cancel();
    expect((await hanging.result).status).toBe('aborted');
  });

  test('throws for anything that is not a run and for invalid options', () => {
    expect(() => toUIMessageResponse({} as never)).toThrow('streamToolLoop');
    expect(() => toUIMessageResponse(run('Hi'), { messageID: 'x' } as never)).toThrow('messageId');
    expect(() => toAgUiResponse(run('Hi'), {} as never)).toThrow('input');
  });
});

describe('toAgUiResponse', () => {
  test('streams a run for AG-UI, and a resumed run without the calls that were already sent', async () => {
    let state: RunState | undefined;
    const route = async (request: Request): Promise<Response> => {
      const input = (await request.json()) as { readonly messages: readonly { readonly content: string }[] };
      const stream =
        state === undefined
          ? run(String(input.messages.at(-1)?.content))
          : streamResumedToolLoop(CONFIG, state, agUiAnswers(input, state.pending));
      stream.result.then((result) => {
        state = result.state;
      });
      return toAgUiResponse(stream, { input });
    };
    const user = new AgUiUser({ fetch: route });
    await user.say('call place look');
    expect(user.interrupts).toMatchObject([{ toolCallId: 'c0', reason: 'tool_call' }]);
    const interruptId = user.interrupts[0]?.id as string;
    expect(() => agUiAnswers({ threadId: 't', runId: 'r', messages: [] }, state?.pending ?? [])).toThrow(
      'cover',
    );
    const done = await user.run({
      resume: [{ interruptId, status: 'resolved', payload: { approved: true } }],
    });
    expect(user.violations).toEqual([]);
    expect(done.map(({ type }) => type)).not.toContain('TOOL_CALL_START');
    expect(done.map(({ type }) => type)).toContain('TOOL_CALL_RESULT');
    expect(user.agent.messages.at(-1)).toMatchObject({ content: 'heard: seen' });
  });
});

describe('createChatHandler', () => {
  test('creates its conversations from a provider, a model, tools and a store', async () => {
    const asked: LLMRequest[] = [];
    const noting: LLMProvider = {
      chat: async (request) => {
        asked.push(request);
        return { content: 'Hello.', toolCalls: [], finishReason: 'stop' };
      },
    };
    const chat = createChatHandler({
      provider: noting,
      model: 'm',
      tools: TOOLS,
      systemPrompt: 'Be brief.',
      store: new MemoryRunStore(),
      authenticate: ({ headers }) => headers.get('x-user'),
    });
    const read = await readMessage(await chatOf(chat).post({ id: 'c1', messages: [said('Hi')] }));
    expect(read.message?.parts.at(-1)).toMatchObject({ text: 'Hello.' });
    expect(asked[0]?.messages[0]).toEqual({ role: 'system', content: 'Be brief.' });
    expect(asked[0]?.tools).toHaveLength(2);
    await chat.close();
  });

  test('reports all invalid and missing options at once, before anything runs', () => {
    const wrong = { provider, model: '', toolz: [], store: {}, protocol: 'soap', maxIterations: -1 };
    const fault = (): string => {
      try {
        createChatHandler(wrong as never);
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    };
    for (const name of ['model', 'toolz', 'store', 'protocol', 'maxIterations', 'authenticate'])
      expect(fault()).toContain(name);
  });
});
