import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  defineTool,
  discoverTools,
  type LLMRequest,
  resumeToolLoop,
  runToolLoop,
  Tool,
  type ToolDefinition,
  type ToolLoopConfig,
  ToolRegistry,
  Toolset,
} from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { historyFaults } from './strict-history.js';

const hello = [{ role: 'user', content: 'Hello' }] as const;

@Toolset({ defer: true, namespace: 'billing' })
class BillingTools {
  @Tool('Creates an invoice for a customer')
  createInvoice(customer: string, amount: number) {
    return `${customer} owes ${amount}`;
  }

  @Tool({ description: 'Cancels an invoice', approval: true })
  cancelInvoice(number: string) {
    return `cancelled ${number}`;
  }

  @Tool({ description: 'The prices of today', defer: false })
  priceList() {
    return ['lamp: 40'];
  }
}

const send = defineTool({
  name: 'send_letter',
  description: 'Sends a letter',
  parameters: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
  defer: true,
  execute: ({ to }) => `sent to ${to}`,
});

function office(): ToolRegistry {
  return new ToolRegistry().register(...discoverTools({ toolsets: [BillingTools] }), send);
}

function calling(name: string, args: object, id = 'c1'): ScriptedStep {
  return { toolCalls: [{ id, name, arguments: args as Record<string, unknown> }] };
}

function setup(steps: readonly ScriptedStep[], more: Partial<ToolLoopConfig> = {}) {
  const provider = new ScriptedProvider(steps);
  const config: ToolLoopConfig = { provider, model: 'm', tools: office(), ...more };
  return { provider, config };
}

function names({ tools = [] }: LLMRequest): readonly string[] {
  return tools.map((tool) => tool.function.name);
}

function answers(
  messages: readonly { readonly role: string; readonly content: unknown }[],
): readonly string[] {
  return messages.flatMap(({ role, content }) => (role === 'tool' ? [String(content)] : []));
}

describe('runToolLoop with deferred tools', () => {
  test('offers the other tools and two fixed ones, and calls a tool found by search', async () => {
    const { provider, config } = setup([
      calling('search_tools', { query: 'make an invoice' }),
      calling('call_tool', { name: 'create_invoice', arguments: { customer: 'Ada', amount: '40' } }),
      { content: 'Done' },
    ]);
    const run = await runToolLoop(config, hello);
    expect(run.content).toBe('Done');
    expect(provider.requests.map(names)).toEqual(Array(3).fill(['price_list', 'search_tools', 'call_tool']));
    const [first, ...others] = provider.requests.map(({ tools }) => JSON.stringify(tools));
    for (const bytes of others) expect(bytes).toBe(first);
    const [found, made] = answers(run.messages);
    expect(found).toContain('"name":"create_invoice"');
    expect(found).toContain('"amount":{"type":"number"}');
    expect(made).toBe('Ada owes 40');
    expect(run.toolCalls.map(({ name, status }) => [name, status])).toEqual([
      ['search_tools', 'success'],
      ['create_invoice', 'success'],
    ]);
    expect(historyFaults(run.messages)).toEqual([]);
    // The history has the call as the model made it.
    expect(JSON.stringify(run.messages)).toContain('"name":"call_tool"');
  });

  test('reports the faults of the called tool, and an unknown tool', async () => {
    const { config } = setup(
      [
        calling('call_tool', { name: 'create_invoice', arguments: { customer: 'Ada' } }),
        calling('call_tool', { name: 'create_invoices', arguments: {} }),
        calling('call_tool', { name: 'create_invoice', customer: 'Bob', amount: 1 }),
        calling('call_tool', {}),
        calling('search_tools', {}),
        { content: 'Well' },
      ],
      { maxRetries: 5 },
    );
    const run = await runToolLoop(config, hello);
    const [missing, unknown, flat, unnamed, empty] = answers(run.messages);
    expect(missing).toContain('create_invoice');
    expect(missing).toContain('amount');
    expect(missing).not.toContain('call_tool');
    expect(unknown).toContain('tool not found: create_invoices');
    expect(flat).toBe('Bob owes 1');
    expect(unnamed).toContain('call_tool');
    expect(empty).toContain('query');
    expect(run.status).toBe('completed');
  });

  test('suspends the run for the approval of the called tool, and resumes it in another process', async () => {
    const steps = [
      calling('search_tools', { query: 'cancel invoice' }),
      calling('call_tool', { name: 'cancel_invoice', arguments: { number: 'A-1' } }, 'c2'),
    ];
    const { config } = setup(steps);
    const run = await runToolLoop(config, hello);
    expect(run.status).toBe('suspended');
    expect(run.pending).toMatchObject([
      { kind: 'approval', tool: 'cancel_invoice', arguments: { number: 'A-1' } },
    ]);
    const state = JSON.parse(JSON.stringify(run.state));
    const later = setup([{ content: 'Cancelled' }]);
    const resumed = await resumeToolLoop(later.config, state, [
      { id: String(run.pending?.[0]?.id), approved: true },
    ]);
    expect(resumed.content).toBe('Cancelled');
    expect(answers(resumed.messages).at(-1)).toBe('cancelled A-1');
    expect(historyFaults(resumed.messages)).toEqual([]);
    expect(names(later.provider.requests[0] as LLMRequest)).toEqual([
      'price_list',
      'search_tools',
      'call_tool',
    ]);
    const wire = resumed.messages.flatMap((message) =>
      'tool_calls' in message ? (message.tool_calls ?? []) : [],
    );
    expect(wire.map((call) => call.function.name)).toEqual(['search_tools', 'call_tool']);
    expect(JSON.parse(String(wire[1]?.function.arguments))).toEqual({
      name: 'cancel_invoice',
      arguments: { number: 'A-1' },
    });
  });

  test('finds no tool that a view hides or a policy refuses', async () => {
    const search = calling('search_tools', {
      query: 'create or cancel an invoice, send a letter',
      limit: 10,
    });
    const find = async (more: Partial<ToolLoopConfig>): Promise<string> => {
      const { config } = setup([search, { content: '' }, { content: 'x' }], more);
      return answers((await runToolLoop(config, hello)).messages)[0] ?? '';
    };
    expect(await find({ tools: office().view({ deny: ['*_invoice'] }) })).not.toContain('invoice"');
    expect(await find({ policy: ({ tool }) => tool.name !== 'create_invoice' })).not.toContain(
      '"create_invoice"',
    );
    const forbidding = new ToolRegistry({ policy: async ({ tool }) => tool.name !== 'send_letter' });
    const both = await find({
      tools: forbidding.merge(office()),
      policy: ({ tool }) => !tool.name.startsWith('cancel'),
    });
    expect(both).toContain('"create_invoice"');
    expect(both).not.toContain('send_letter');
    expect(both).not.toContain('cancel_invoice');
    // A policy that depends on arguments decides at the call.
    const small = await find({ policy: ({ arguments: { amount } }) => Number(amount) < 100 });
    expect(small).toContain('"create_invoice"');
    const throwing = await find({
      policy: () => {
        throw new Error('no');
      },
    });
    expect(throwing).toContain('No tool was found');
  });

  test('defers tools above the token limit, except those with defer: false', async () => {
    const many = Array.from({ length: 60 }, (_, number) =>
      defineTool({ name: `tool_${number}`, description: 'Does things', parameters: {}, execute: () => 'ok' }),
    );
    const kept = defineTool({
      name: 'kept',
      description: 'k',
      parameters: {},
      defer: false,
      execute: () => '',
    });
    const tools = [...many, kept];
    const asked = async (deferAbove?: number): Promise<readonly string[]> => {
      const { provider, config } = setup([{ content: 'Hi' }], {
        tools,
        ...(deferAbove === undefined ? {} : { deferAbove }),
      });
      await runToolLoop(config, hello);
      return names(provider.requests[0] as LLMRequest);
    };
    expect(await asked()).toHaveLength(61);
    expect(await asked(1_000_000)).toHaveLength(61);
    expect(await asked(100)).toEqual(['kept', 'search_tools', 'call_tool']);
  });

  test('finds tools registered during the run, and rejects names that it uses itself', async () => {
    const tools = office();
    const late = defineTool({
      name: 'paint_wall',
      description: 'Paints',
      parameters: {},
      defer: true,
      execute: () => 'painted',
    });
    const { config } = setup(
      [
        () => {
          tools.register(late);
          return { toolCalls: [{ id: 'c1', name: 'search_tools', arguments: { query: 'paint' } }] };
        },
        calling('call_tool', { name: 'paint_wall', arguments: {} }, 'c2'),
        { content: 'Done' },
      ],
      { tools },
    );
    const run = await runToolLoop(config, hello);
    expect(answers(run.messages)[1]).toBe('painted');
    const taken = defineTool({ name: 'call_tool', description: 'x', parameters: {}, execute: () => '' });
    const clash = setup([{ content: 'x' }], { tools: office().register(taken) });
    await expect(runToolLoop(clash.config, hello)).rejects.toThrow("'call_tool'");
  });

  test('searches by embedding if there is an embedder, and by words if it fails', async () => {
    const vectors: Readonly<Record<string, readonly number[]>> = { send: [1, 0], epistle: [1, 0.1] };
    const embed = async (texts: readonly string[]) =>
      texts.map((text) => Object.entries(vectors).find(([word]) => text.includes(word))?.[1] ?? [0, 1]);
    const search = calling('search_tools', { query: 'epistle', limit: 1 });
    const good = setup([search, { content: 'x' }], { toolEmbedder: { embed } });
    expect(answers((await runToolLoop(good.config, hello)).messages)[0]).toContain('send_letter');
    const bad = setup([calling('search_tools', { query: 'letter' }), { content: 'x' }], {
      toolEmbedder: { embed: () => Promise.reject(new Error('down')) },
      logger: { debug() {}, info() {}, warn() {}, error() {} },
    });
    expect(answers((await runToolLoop(bad.config, hello)).messages)[0]).toContain('send_letter');
  });

  test('adds found tools to the request if the provider supports it, and calls them by name', async () => {
    const requests: LLMRequest[] = [];
    const steps = [
      { toolCalls: [{ id: 'c1', name: 'search_tools', arguments: { query: 'create invoice', limit: 1 } }] },
      { toolCalls: [{ id: 'c2', name: 'create_invoice', arguments: { customer: 'Ada', amount: 2 } }] },
    ];
    const provider = {
      takesFoundTools: () => true,
      async chat(request: LLMRequest) {
        requests.push(request);
        const step = steps[requests.length - 1];
        return {
          content: step ? '' : 'Done',
          toolCalls: step?.toolCalls ?? [],
          finishReason: 'stop' as const,
        };
      },
    };
    const run = await runToolLoop({ provider, model: 'm', tools: office() }, hello);
    expect(run.content).toBe('Done');
    expect(requests.map(names)).toEqual([
      ['price_list', 'search_tools'],
      ['price_list', 'search_tools', 'create_invoice'],
      ['price_list', 'search_tools', 'create_invoice'],
    ]);
    expect(requests[1]?.tools?.[1]).toMatchObject({ isSearch: true });
    expect(requests[1]?.tools?.[2]).toMatchObject({ defer: true, namespace: 'billing' });
    expect(run.messages.find((message) => message.role === 'tool')).toMatchObject({
      found: ['create_invoice'],
    });
  });
});

type Step = { readonly add: string } | { readonly remove: string };

const NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];
const step = fc.oneof(
  fc.constantFrom(...NAMES).map((add): Step => ({ add })),
  fc.constantFrom(...NAMES).map((remove): Step => ({ remove })),
);

function plain(name: string): ToolDefinition {
  return defineTool({ name, description: `Does ${name}`, parameters: {}, execute: () => 'ok' });
}

const made = new Map(NAMES.map((name) => [name, plain(name)]));

function live(registry: ToolRegistry, item: Step): void {
  if ('add' in item) registry.register(made.get(item.add) as ToolDefinition);
  else registry.unregister(item.remove);
}

async function firstRequest(tools: ToolRegistry): Promise<string> {
  const provider = new ScriptedProvider([{ content: 'Hi' }]);
  await runToolLoop({ provider, model: 'm', tools }, hello);
  return JSON.stringify(provider.requests[0]?.tools ?? []);
}

test('runToolLoop sends equal bytes for equal lists of tools, whatever the order of changes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (history) => {
      const lived = new ToolRegistry();
      for (const item of history) live(lived, item);
      const list = lived.list().map((name) => made.get(name) as ToolDefinition);
      const other = new ToolRegistry().register(...list);
      expect(await firstRequest(lived)).toBe(await firstRequest(other));
    }),
    { numRuns: 60 },
  );
});

test('runToolLoop never reorders within a run the tools that it sent before', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { maxLength: 4 }), { minLength: 2, maxLength: 8 }),
      async (moments) => {
        const tools = new ToolRegistry().register(plain('work'));
        const steps: ScriptedStep[] = moments.map((moment, index) => () => {
          for (const item of moment) live(tools, item);
          return index === moments.length - 1
            ? { content: 'Done' }
            : { toolCalls: [{ id: `c${index}`, name: 'work', arguments: { index } as never }] };
        });
        const provider = new ScriptedProvider(steps);
        await runToolLoop({ provider, model: 'm', tools, loopGuard: false }, hello);
        const seen: string[] = [];
        for (const request of provider.requests) {
          const now = names(request);
          // Tools sent before keep their order, and new ones follow them.
          const old = now.filter((name) => seen.includes(name));
          expect(now.slice(0, old.length)).toEqual(seen.filter((name) => now.includes(name)));
          for (const name of now) if (!seen.includes(name)) seen.push(name);
        }
      },
    ),
    { numRuns: 60 },
  );
});
