import { describe, expect, test } from '@jest/globals';
import { defineTool, resumeToolLoop, runToolLoop, type ToolPolicy, ToolRegistry } from 'toolwright';
import { toAiSdkTools } from 'toolwright/ai-sdk';
import { ScriptedProvider } from 'toolwright/testing';

const pay = defineTool({ name: 'pay', description: 'Pay', execute: () => 'paid' });
const asking: ToolPolicy = () => ({ ask: true, reason: 'it costs money' });
const messages = [{ role: 'user', content: 'Pay' }] as const;

function config(policy: ToolPolicy) {
  const provider = new ScriptedProvider([{ toolCalls: [{ id: 'c1', name: 'pay' }] }, { content: 'done' }]);
  return { provider, model: 'm', tools: [pay], policy };
}

describe('a policy that asks', () => {
  test('suspends the run with its reason', async () => {
    const run = await runToolLoop(config(asking), messages);
    expect(run.status).toBe('suspended');
    expect(run.pending).toMatchObject([{ kind: 'approval', tool: 'pay', message: 'it costs money' }]);
  });

  test('accepts an approval, and takes a refusal as final', async () => {
    for (const approved of [true, false]) {
      const given = config(asking);
      const { state, pending } = await runToolLoop(given, messages);
      const stored = JSON.parse(JSON.stringify(state));
      const run = await resumeToolLoop(given, stored, [{ id: pending?.[0]?.id ?? '', approved }]);
      expect(run.toolCalls.map(({ status }) => status)).toEqual([approved ? 'success' : 'refused']);
    }
  });

  test('refuses if the caller cannot suspend', async () => {
    const { isError, forLLM } = await new ToolRegistry({ policy: asking }).register(pay).execute('pay', {});
    expect([isError, forLLM]).toEqual([
      true,
      "The tool 'pay' needs an approval, which cannot be given here; it was not run. Reason: it costs money",
    ]);
    const silent = new ToolRegistry({ policy: () => ({ ask: true }) }).register(pay);
    expect((await silent.execute('pay', {})).forLLM).toMatch(/it was not run\.$/);
  });

  test('is overruled by a policy that refuses, in either order', async () => {
    for (const [own, given] of [
      [asking, () => false],
      [() => ({ allow: false, reason: 'no' }), asking],
    ] as const) {
      const tools = new ToolRegistry({ policy: own }).register(pay);
      const run = await runToolLoop({ ...config(given), tools }, messages);
      expect(run.toolCalls.map(({ status }) => status)).toEqual(['refused']);
    }
  });

  test('refuses if `ask` is not true', async () => {
    const odd = (() => ({ ask: 'yes' })) as unknown as ToolPolicy;
    const run = await runToolLoop(config(odd), messages);
    expect(run.toolCalls.map(({ status }) => status)).toEqual(['refused']);
  });

  test('sets needsApproval of the AI SDK', async () => {
    const tools = toAiSdkTools(new ToolRegistry().register(pay), {}, { policy: asking });
    const needsApproval = tools.pay?.needsApproval as (input: unknown, options: object) => Promise<boolean>;
    expect(await needsApproval({}, { toolCallId: 'c1', messages: [] })).toBe(true);
  });
});
