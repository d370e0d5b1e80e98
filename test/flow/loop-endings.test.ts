import { describe, expect, test } from '@jest/globals';
import {
  Conversation,
  defineTool,
  type LLMProvider,
  type Message,
  resumeToolLoop,
  runToolLoop,
  streamToolLoop,
  type ToolLoopConfig,
  ToolResult,
  userResult,
} from 'toolwright';
import { ScriptedProvider, type ScriptedReply, type ScriptedStep } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const hello: readonly Message[] = [{ role: 'user', content: 'Hello' }];
const parameters = { type: 'object', properties: { a: { type: 'object' }, b: { type: 'number' } } } as const;
const look = defineTool({ name: 'look', description: 'Look', parameters, execute: () => 'nothing' });

function setup(steps: readonly ScriptedStep[], more: Partial<ToolLoopConfig> = {}) {
  const provider = new ScriptedProvider(steps);
  return { provider, config: { provider, model: 'm', tools: [look], ...more } };
}

function call(name: string, args: object = {}): ScriptedReply {
  return { toolCalls: [{ name, arguments: args as Record<string, unknown> }] };
}

describe('the loop guard of runToolLoop', () => {
  const one = call('look', { a: { x: 1, y: 2 }, b: 1 });
  const other = call('look', { b: 1, a: { y: 2, x: 1 } });

  test('treats arguments in another order as the same call', async () => {
    const { config } = setup([one, other, one, other, one, other, { content: 'Done.' }]);
    expect(await runToolLoop(config, hello)).toMatchObject({
      status: 'failed',
      iterations: 6,
      error: { name: 'ToolLoopStuck' },
    });
  });

  test('counts repeated calls across a suspension', async () => {
    const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
    const steps = [one, call('pay'), other, one, other, one, other, { content: 'Done.' }];
    const { config } = setup(steps, { tools: [look, pay] });
    const run = await runToolLoop(config, hello);
    const state = JSON.parse(JSON.stringify(run.state));
    const answers = run.pending!.map(({ id }) => ({ id, approved: true }));
    const resumed = await resumeToolLoop(config, state, answers);
    // The payment was a new call, so that the count restarted after it.
    expect(resumed).toMatchObject({ status: 'completed', iterations: 8 });
    expect(JSON.stringify(resumed.messages)).toContain('This call returned the same result 5 times');
  });

  test('stops a cycle in which the run is suspended again and again', async () => {
    const pay = defineTool({ name: 'pay', description: 'Pay', approval: true, execute: () => 'paid' });
    const round = [call('pay'), one];
    const { config } = setup(Array.from({ length: 9 }, () => round).flat(), { tools: [look, pay] });
    let run = await runToolLoop(config, hello);
    for (let times = 0; run.status === 'suspended' && times < 9; times += 1) {
      const answers = run.pending!.map(({ id }) => ({ id, approved: true }));
      run = await resumeToolLoop(config, run.state, answers);
    }
    expect(run).toMatchObject({ status: 'failed', iterations: 12, error: { name: 'ToolLoopStuck' } });
  });

  test('does not stop calls that differ in their arguments', async () => {
    const steps = Array.from({ length: 12 }, (_, index) => call('look', { b: index }));
    const { config } = setup([...steps, { content: 'Done.' }]);
    expect(await runToolLoop(config, hello)).toMatchObject({ status: 'completed', iterations: 13 });
  });
});

describe('a reply without text and calls', () => {
  test('is requested once more', async () => {
    const { config, provider } = setup([{}, { content: 'Here I am.' }]);
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({ status: 'completed', content: 'Here I am.', iterations: 2 });
    expect(provider.requests[1]?.messages).toEqual(hello);
    expect(run.messages).toHaveLength(2);
  });

  test.each<[string, ScriptedReply]>([
    ['empty', {}],
    ['white space', { content: ' \n' }],
    ['empty and truncated', { finishReason: 'length' }],
  ])('fails with EmptyReply if the second reply is again %s', async (_what, empty) => {
    const { config, provider } = setup([call('look'), empty, empty, { content: 'Too late.' }]);
    const run = await runToolLoop(config, hello);
    expect(run).toMatchObject({
      status: 'failed',
      content: '',
      iterations: 3,
      error: { name: 'EmptyReply', code: 522 },
    });
    expect(run.messages.at(-1)).toMatchObject({ role: 'tool' });
    expect(historyFaults(run.messages)).toEqual([]);
    expect(provider.requests).toHaveLength(3);
  });

  test('is requested again each time if there was a call in between', async () => {
    const { config } = setup([{}, call('look'), {}, { content: 'Done.' }]);
    expect(await runToolLoop(config, hello)).toMatchObject({ status: 'completed', iterations: 4 });
  });

  test('is not requested again beyond maxIterations', async () => {
    const { config, provider } = setup([{}, { content: 'Too late.' }], { maxIterations: 1 });
    expect(await runToolLoop(config, hello)).toMatchObject({ status: 'failed', error: { code: 522 } });
    expect(provider.requests).toHaveLength(1);
  });

  test('completes the run if a tool has sent a message to the user', async () => {
    const say = defineTool({ name: 'say', description: 'Say', execute: () => userResult('Hello, user') });
    const whisper = defineTool({
      name: 'whisper',
      description: 'Whisper',
      execute: () => new ToolResult({ forLLM: 'ok', forUser: 'Hello, user', silent: true }),
    });
    const tools = [say, whisper];
    const said = setup([call('say'), {}], { tools });
    expect(await runToolLoop(said.config, hello)).toMatchObject({ status: 'completed', content: '' });
    const whispered = setup([call('whisper'), {}, {}], { tools });
    expect(await runToolLoop(whispered.config, hello)).toMatchObject({
      status: 'failed',
      error: { code: 522 },
    });
  });

  test('completes the run after a tool with returnDirect', async () => {
    const direct = defineTool({
      name: 'direct',
      description: 'Direct',
      returnDirect: true,
      execute: () => 'it',
    });
    const tools = [direct, look];
    const both = { toolCalls: [{ name: 'direct' }, { name: 'look' }] };
    const { config, provider } = setup([both, {}], { tools });
    expect(await runToolLoop(config, hello)).toMatchObject({ status: 'completed', content: '' });
    const alone = setup([call('direct')], { tools });
    expect(await runToolLoop(alone.config, hello)).toMatchObject({ status: 'completed', content: 'it' });
    provider.assertUsedUp();
  });

  test('leaves a conversation usable', async () => {
    const { config } = setup([{}, {}, { content: 'Hello.' }]);
    const conversation = new Conversation(config);
    expect(await conversation.prompt('Anybody?')).toMatchObject({ status: 'failed', error: { code: 522 } });
    expect(await conversation.prompt('Anybody at all?')).toMatchObject({ status: 'completed' });
  });
});

describe('an aborted run', () => {
  const reason = new Error('the user pressed stop');

  test('has the abort reason as its cause, before the first request and during a call', async () => {
    const { config } = setup([call('wait')]);
    expect(await runToolLoop({ ...config, signal: AbortSignal.abort(reason) }, hello)).toMatchObject({
      status: 'aborted',
      error: { name: 'RunAborted', cause: reason },
    });
    const stop = new AbortController();
    const wait = defineTool({
      name: 'wait',
      description: 'Wait',
      execute: () => {
        stop.abort(reason);
        return new Promise(() => {});
      },
    });
    const run = await runToolLoop({ ...config, tools: [wait], signal: stop.signal }, hello);
    expect(run).toMatchObject({ status: 'aborted', error: { name: 'RunAborted', cause: reason } });
  });

  test('returns the text streamed so far', async () => {
    const stop = new AbortController();
    const provider: LLMProvider = {
      chat: () => Promise.reject(new Error('it is streamed')),
      async *stream() {
        yield { type: 'text-delta', text: 'The first ' };
        yield { type: 'text-delta', text: 'words' };
        await new Promise(() => {});
      },
    };
    const stream = streamToolLoop({ provider, model: 'm', signal: stop.signal }, hello);
    let text = '';
    for await (const event of stream) {
      if (event.type === 'text-delta') text += event.text;
      if (text === 'The first words') stop.abort(reason);
    }
    const run = await stream.result;
    expect(run).toMatchObject({ status: 'aborted', content: text, error: { cause: reason } });
    expect(run.messages).toEqual(hello);
  });

  test('returns the text streamed so far in a conversation, too', async () => {
    const provider = new ScriptedProvider([{ content: 'one two three' }]);
    const conversation = new Conversation({ provider, model: 'm' });
    conversation.subscribe((event) => {
      if (event.type === 'text-delta' && event.text.includes('two')) conversation.abort(reason);
    });
    expect(await conversation.prompt('Count')).toMatchObject({
      status: 'aborted',
      content: 'one two',
      error: { cause: reason },
    });
  });
});
