import { defineTool, type LLMRequest, type Message, type ToolDefinition } from 'toolwright';
import { ScriptedProvider } from 'toolwright/testing';
import { Agents, type AgentsOptions, agentTools, type NamedAgent } from 'toolwright/toolbox/agents';

export const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 };
export const hello: readonly Message[] = [{ role: 'user', content: 'Pay what is due' }];

type Steps = ConstructorParameters<typeof ScriptedProvider>[0];

/** A scripted provider that records its requests and reports the same usage for every reply. */
export function scripted(...steps: Steps) {
  const provider = new ScriptedProvider(
    steps.map((step) => (typeof step === 'function' ? step : { usage, ...step })) as Steps,
  );
  const asked: LLMRequest[] = [];
  return {
    asked,
    chat: (request: LLMRequest) => {
      asked.push(request);
      return provider.chat(request);
    },
  };
}

/** A reply that calls one tool. */
export function calling(name: string, args: object, id = `${name}_1`) {
  return { toolCalls: [{ id, name, arguments: args }] } as never;
}

/** A tool that pays after an approval; `ran` contains the arguments of its calls. */
export function payTool(more: Partial<ToolDefinition> = {}) {
  const ran: unknown[] = [];
  const pay = defineTool({
    name: 'pay',
    description: 'Pay',
    parameters: { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] },
    approval: true,
    execute: (args: unknown) => `paid ${ran.push(args)}`,
    ...(more as object),
  }) as ToolDefinition;
  return { ran, pay };
}

/** An agent with a scripted provider. */
export function agentOf(provider: NamedAgent['provider'], more: Partial<NamedAgent> = {}): NamedAgent {
  return { description: 'Does it', provider, model: 'small', ...more };
}

/** A table of agents and its tools. */
export function tableOf(agents: AgentsOptions['agents'], more: Partial<AgentsOptions> = {}) {
  const table = new Agents({ agents, ...more });
  return { table, tools: agentTools(table) };
}

/** Resolves when `open` is called. */
export function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
