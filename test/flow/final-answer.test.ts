import { describe, expect, test } from '@jest/globals';
import {
  agentAsTool,
  defineTool,
  type JsonSchema,
  type LLMProvider,
  type Message,
  resumeToolLoop,
  runToolLoop,
} from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { z } from 'zod';

const hello: readonly Message[] = [{ role: 'user', content: 'How is the weather?' }];
const schema = z.object({ place: z.string(), degrees: z.number() });
const answer = { place: 'Bern', degrees: 7 };
const look = defineTool({ name: 'look', description: 'Looks', parameters: {}, execute: () => 'seen' });
const ask = defineTool({
  name: 'ask',
  description: 'Asks',
  parameters: {},
  approval: true,
  execute: () => 'asked',
});

function script(...steps: readonly ScriptedStep[]) {
  return new ScriptedProvider(steps);
}

const calls = (args: unknown, ...others: string[]) => ({
  toolCalls: [
    ...others.map((name) => ({ id: name, name })),
    { id: 'f', name: 'final_answer', arguments: args as never },
  ],
});

describe('output, with a model without response format', () => {
  test('runToolLoop ends with the validated and typed arguments of final_answer', async () => {
    const provider = script(
      { toolCalls: [{ id: 'l', name: 'look' }] },
      calls('{"place":"Bern","degrees":"7",}'),
    );
    const run = await runToolLoop({ provider, model: 'm', tools: [look], output: schema }, hello);
    expect(run).toMatchObject({ status: 'completed', output: answer, content: JSON.stringify(answer) });
    const degrees: number | undefined = run.output?.degrees;
    expect(degrees).toBe(7);
    expect(provider.requests[0]?.tools?.map((tool) => tool.function.name)).toEqual(['look', 'final_answer']);
    expect(provider.requests[0]).not.toHaveProperty('responseFormat');
    expect(run.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool']);
  });

  test('an invalid answer is reported to the model, which corrects it', async () => {
    const provider = script(calls({ place: 'Bern' }), calls(answer));
    const run = await runToolLoop({ provider, model: 'm', output: schema }, hello);
    expect(run).toMatchObject({ status: 'completed', output: answer });
    expect(provider.requests[1]?.messages.at(-1)?.content).toContain('degrees');
  });

  test('a run whose model calls final_answer wrongly too often ends with InvalidOutput', async () => {
    const wrong = calls({ place: 'Bern' });
    const run = await runToolLoop(
      { provider: script(wrong, wrong, wrong), model: 'm', output: schema },
      hello,
    );
    expect(run).toMatchObject({
      status: 'failed',
      error: {
        code: 525,
        message: expect.stringMatching(/^The model gave no answer that fits the schema\. .*degrees/s),
        cause: { code: 503 },
      },
    });
    const unknown = { toolCalls: [{ id: 'x', name: 'final_answer', arguments: {} }] };
    const plain = await runToolLoop({ provider: script(unknown, unknown, unknown), model: 'm' }, hello);
    expect(plain).toMatchObject({ status: 'failed', error: { code: 503 } });
  });

  test('a model that answers in text is asked for the tool once', async () => {
    const provider = script({ content: 'Fine.' }, calls(answer));
    const run = await runToolLoop({ provider, model: 'm', tools: [look], output: schema }, hello);
    expect(run.output).toEqual(answer);
    expect(provider.requests[1]?.toolChoice).toEqual({ tool: 'final_answer' });
    const stubborn = script({ content: 'Fine.' }, { content: 'Really fine.' });
    const failed = await runToolLoop({ provider: stubborn, model: 'm', output: schema }, hello);
    expect(failed).toMatchObject({ status: 'failed', content: 'Really fine.', error: { code: 525 } });
    expect(failed).not.toHaveProperty('output');
  });

  test('a text with the valid answer is accepted', async () => {
    const content = `\`\`\`json\n${JSON.stringify(answer)}\n\`\`\``;
    const run = await runToolLoop({ provider: script({ content }), model: 'm', output: schema }, hello);
    expect(run).toMatchObject({ output: answer, content });
  });

  test('a `returnDirect` tool does not end the run', async () => {
    const provider = script({ toolCalls: [{ name: 'look' }] }, calls(answer));
    const tools = [{ ...look, returnDirect: true }];
    const run = await runToolLoop({ provider, model: 'm', tools, output: schema }, hello);
    expect(run).toMatchObject({ status: 'completed', output: answer, iterations: 2 });
  });

  test('other calls of the same reply run first', async () => {
    const provider = script(calls(answer, 'look'));
    const run = await runToolLoop({ provider, model: 'm', tools: [look], output: schema }, hello);
    expect(run).toMatchObject({ status: 'completed', output: answer });
    expect(run.toolCalls.map(({ name, status }) => [name, status])).toEqual([
      ['look', 'success'],
      ['final_answer', 'success'],
    ]);
  });

  test('resumeToolLoop ends with an answer from the same reply as a suspended call', async () => {
    const config = { model: 'm', tools: [ask], output: schema };
    const run = await runToolLoop({ ...config, provider: script(calls(answer, 'ask')) }, hello);
    expect(run.status).toBe('suspended');
    const answers = (run.pending ?? []).map(({ id }) => ({ id, approved: true }));
    const state = JSON.parse(JSON.stringify(run.state));
    const resumed = await resumeToolLoop({ ...config, provider: script() }, state, answers);
    expect(resumed).toMatchObject({ status: 'completed', output: answer });
  });

  describe('the output has the transforms of its schema:', () => {
    const dated = z.object({
      at: z.iso.datetime().transform((text) => new Date(text)),
      cents: z.string().transform((text) => BigInt(text)),
      kind: z.string().trim().default('day'),
    });
    const sent = { at: '2026-01-31T09:30:00Z', cents: '5', kind: ' hour' };
    const wanted = { at: new Date(sent.at), cents: 5n, kind: 'hour' };

    test('of a run, also one that was suspended beside its answer', async () => {
      const config = { model: 'm', tools: [ask], output: dated };
      const run = await runToolLoop({ ...config, provider: script(calls(sent)) }, hello);
      expect(run).toMatchObject({ status: 'completed', output: wanted, content: JSON.stringify(sent) });
      const at: Date | undefined = run.output?.at;
      expect(at?.getUTCFullYear()).toBe(2026);
      const text = await runToolLoop(
        { ...config, provider: script({ content: JSON.stringify(sent) }) },
        hello,
      );
      expect(text.output).toEqual(wanted);
      const suspended = await runToolLoop({ ...config, provider: script(calls(sent, 'ask')) }, hello);
      const answers = (suspended.pending ?? []).map(({ id }) => ({ id, approved: true }));
      const state = JSON.parse(JSON.stringify(suspended.state));
      expect((await resumeToolLoop({ ...config, provider: script() }, state, answers)).output).toEqual(
        wanted,
      );
    });

    test('an agent that is a tool returns its JSON', async () => {
      const agent = agentAsTool({
        ...{ name: 'weather', description: 'Asks for the weather', model: 'm', tools: [], output: dated },
        provider: script(calls(sent)),
      });
      const call = { toolCalls: [{ name: 'weather', arguments: { task: 'x' } }] };
      const provider = script(call, { content: 'Done.' });
      const run = await runToolLoop({ provider, model: 'm', tools: [agent] }, hello);
      const json = '{"at":"2026-01-31T09:30:00.000Z","cents":"5","kind":"hour"}';
      expect(run.toolCalls[0]?.result.forLLM).toBe(json);
    });

    test('a transform that throws is a failed run', async () => {
      const throwing = z.object({
        place: z.string().transform(() => {
          throw new Error('no map');
        }),
      });
      const provider = script(
        calls({ place: 'Bern' }),
        { content: '{"place":"Bern"}' },
        { content: '{"place":"Bern"}' },
      );
      const run = await runToolLoop({ provider, model: 'm', output: throwing, maxRetries: 1 }, hello);
      expect(run).toMatchObject({ status: 'failed' });
      expect(run.error?.message).toContain('no map');
    });
  });

  test('a schema that is not an object schema is rejected', async () => {
    const run = runToolLoop({ provider: script(), model: 'm', output: { type: 'string' } }, hello);
    await expect(run).rejects.toThrow('output');
  });
});

describe('output, with a model with response format', () => {
  function native(...replies: readonly string[]) {
    const provider = script(...replies.map((content) => ({ content })));
    const formatted: LLMProvider = {
      chat: (request) => provider.chat(request),
      supportsResponseFormat: (model) => model === 'm',
    };
    return { provider: formatted, requests: provider.requests };
  }

  test.each(['length', 'content_filter'] as const)(
    'an answer that was cut off (%s) is requested again and never completed by a repair',
    async (finishReason) => {
      const cut = { content: '{"orders":[{"id":"1"},{"id":"2"}', finishReason };
      const whole = '{"orders":[{"id":"1"},{"id":"2"},{"id":"3"}]}';
      const orders = z.object({ orders: z.array(z.object({ id: z.string() })) });
      for (const supportsResponseFormat of [() => true, undefined]) {
        const scripted = script(cut, { content: whole });
        const provider: LLMProvider = {
          chat: (request) => scripted.chat(request),
          ...(supportsResponseFormat && { supportsResponseFormat }),
        };
        const run = await runToolLoop({ provider, model: 'm', output: orders }, hello);
        expect(run.output).toEqual(JSON.parse(whole));
        expect(scripted.requests).toHaveLength(2);
      }
      const provider = script(cut, cut);
      const run = await runToolLoop({ provider, model: 'm', output: orders }, hello);
      expect(run).toMatchObject({ status: 'failed', error: { name: 'InvalidOutput' }, content: cut.content });
      expect(run.error?.message).toContain(`cut off (${finishReason})`);
    },
  );

  test('a tool of the run with the name of the answer’s tool is refused', async () => {
    const own = defineTool({
      name: 'final_answer',
      description: 'Mine',
      parameters: {},
      execute: () => 'mine',
    });
    const run = runToolLoop({ provider: script(), model: 'm', tools: [own], output: schema }, hello);
    await expect(run).rejects.toMatchObject({ code: 521, message: expect.stringContaining('final_answer') });
  });

  test.each([
    [
      'responseForm that throws',
      {
        responseForm: () => {
          throw new Error('no form');
        },
      },
      /no form/,
    ],
    [
      'responseForm without restore',
      { responseForm: (given: JsonSchema) => ({ schema: given }) },
      /responseForm/,
    ],
    [
      'supportsResponseFormat that is not a function',
      { supportsResponseFormat: true },
      /supportsResponseFormat/,
    ],
    [
      'restore that throws',
      {
        responseForm: (given: JsonSchema) => ({
          schema: given,
          restore: () => {
            throw new Error('no way back');
          },
        }),
      },
      /no way back/,
    ],
  ])('a provider with a %s fails the run, with the history', async (_what, methods, message) => {
    const { provider } = native(JSON.stringify(answer));
    const wrong = { ...provider, ...methods } as never;
    const run = await runToolLoop({ provider: wrong, model: 'm', output: schema }, hello);
    expect(run).toMatchObject({ status: 'failed', error: { name: 'ProviderFailed' } });
    expect(run.error?.message).toMatch(message);
    expect(run.messages.length).toBeGreaterThan(0);
  });

  test('a provider receives the schema unchanged, or in the form that its responseForm returns', async () => {
    // The strict form would differ: `degrees` is optional.
    const output: JsonSchema = {
      type: 'object',
      properties: { place: { type: 'string' }, degrees: { type: 'number' } },
      required: ['place'],
    };
    const plain = native('{"place":"Bern"}');
    await runToolLoop({ provider: plain.provider, model: 'm', output }, hello);
    expect(plain.requests[0]?.responseFormat).toEqual({ type: 'json', schema: output, name: 'final_answer' });

    const formed = native('{"wrapped":{"place":"Bern"}}');
    const provider: LLMProvider = {
      ...formed.provider,
      responseForm: (schema) => ({
        schema: { type: 'object', properties: { wrapped: schema } },
        restore: (value) => (value as { readonly wrapped: unknown }).wrapped,
      }),
    };
    const run = await runToolLoop({ provider, model: 'm', output }, hello);
    expect(run).toMatchObject({ status: 'completed', output: { place: 'Bern' } });
    expect(formed.requests[0]?.responseFormat).toMatchObject({ schema: { properties: { wrapped: output } } });
  });

  test('runToolLoop requests JSON with the schema, and offers no final_answer tool', async () => {
    const { provider, requests } = native(JSON.stringify(answer));
    const run = await runToolLoop({ provider, model: 'm', tools: [look], output: schema }, hello);
    expect(run).toMatchObject({ status: 'completed', output: answer });
    expect(requests[0]?.responseFormat).toMatchObject({ type: 'json', schema: { type: 'object' } });
    expect(requests[0]?.tools).toHaveLength(1);
  });

  test('an invalid reply is requested once more with the error, and then the run fails', async () => {
    const { provider, requests } = native('{"place":"Bern"}', JSON.stringify(answer));
    const run = await runToolLoop({ provider, model: 'm', output: schema }, hello);
    expect(run.output).toEqual(answer);
    expect(requests[1]?.messages.at(-1)).toMatchObject({ role: 'user' });
    expect(requests[1]?.messages.at(-1)?.content).toContain('degrees');
    const hopeless = native('{}', '{}');
    expect(
      await runToolLoop({ provider: hopeless.provider, model: 'm', output: schema }, hello),
    ).toMatchObject({
      status: 'failed',
      error: { name: 'InvalidOutput' },
    });
  });

  test('the texts about an invalid reply do not mention a tool, as the model has none', async () => {
    const { provider, requests } = native('Sunny.', '{"place":1}');
    const run = await runToolLoop({ provider, model: 'm', output: schema }, hello);
    expect(requests[1]?.messages.at(-1)?.content).toBe(
      'The answer is not a JSON object.\nSend the whole answer again, as JSON only.',
    );
    expect(run.error?.message).toMatch(/that fits the schema\. The answer is not valid:\n {2}- place: /);
    expect(run.error?.message).not.toMatch(/tool|arguments/);
  });
});
