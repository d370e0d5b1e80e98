import {
  type Answer,
  defineTool,
  type PendingCall,
  type RunStore,
  runToolLoop,
  type ToolLoopConfig,
  type ToolLoopResult,
} from 'toolwright';
import { type ScriptedCall, ScriptedProvider, type ScriptedStep } from 'toolwright/testing';

/** The effects in the shop, in order. */
export interface Shop {
  readonly done: string[];
  readonly tools: NonNullable<ToolLoopConfig['tools']>;
}

/** A shop whose orders need an approval; `whilePlacing` runs inside of the approved call. */
export function openShop(whilePlacing: (signal: AbortSignal) => unknown = () => undefined): Shop {
  const done: string[] = [];
  const anything = { type: 'object', properties: { sku: { type: 'string' } } } as const;
  const count = defineTool({
    name: 'count_stock',
    description: 'Count',
    parameters: anything,
    execute: ({ sku }) => {
      done.push(`counted ${sku}`);
      return '3 left';
    },
  });
  const place = defineTool({
    name: 'place_order',
    description: 'Place',
    parameters: anything,
    approval: true,
    execute: async ({ sku }, { signal }) => {
      done.push(`placed ${sku}`);
      await whilePlacing(signal);
      return `ordered ${sku}`;
    },
  });
  return { done, tools: [count, place] };
}

/** A reply that counts and orders in one message. */
export function countAndOrder(...skus: readonly string[]): ScriptedStep {
  const calls = skus.map((sku): ScriptedCall => ({ name: 'place_order', arguments: { sku } }));
  return { toolCalls: [{ name: 'count_stock', arguments: { sku: skus[0] } }, ...calls] };
}

/** Runs until the run is suspended and stored. */
export async function suspendIn(
  store: RunStore,
  { tools }: Shop,
  { skus = ['a'], ...more }: { readonly skus?: readonly string[] } & Partial<ToolLoopConfig> = {},
): Promise<ToolLoopResult & { readonly runId: string }> {
  const provider = new ScriptedProvider([countAndOrder(...skus)]);
  const config = { provider, model: 'm', tools, store, ...more };
  const run = await runToolLoop(config, [{ role: 'user', content: 'One a, please' }]);
  return { ...run, runId: run.runId ?? 'not suspended' };
}

/** Approves everything that is pending. */
export function approveAll(pending: readonly PendingCall[] | undefined): readonly Answer[] {
  return (pending ?? []).map(({ id }) => ({ id, approved: true }));
}

/** The config of a process that resumes the run with these replies. */
export function resuming({ tools }: Shop, ...steps: readonly ScriptedStep[]): ToolLoopConfig {
  return { provider: new ScriptedProvider(steps), model: 'm', tools };
}
