import { type CallScope, scopeFields } from '../../core/contract/call.js';
import type { ClassType } from '../../core/contract/declaration.js';
import type { ToolContextData } from '../../core/contract/tool-context.js';
import type { ToolResult } from '../../core/contract/tool-result.js';
import { invalidArguments, invalidOptions, refuseOptions } from '../../core/errors/author-fault.js';
import { isRecord } from '../../core/kernel/json.js';
import { FUNCTION, optionTable, RECORD } from '../../core/kernel/options.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';
import { isolatedContainer, type Override } from '../../tools/discovery/containers/toolset-host.js';
import { discoverTools } from '../../tools/discovery/discover-tools.js';

/** A mock: a token (class, string or symbol) with the value to inject, as a pair or in NestJS's form. */
export type HarnessOverride = Override | { readonly provide: unknown; readonly useValue: unknown };

/** Options of {@link toolHarness}. */
export interface ToolHarnessOptions {
  readonly overrides?: Iterable<HarnessOverride>;
  /** `context.data` for the tools. */
  readonly data?: ToolContextData;
}

const OPTIONS = optionTable<ToolHarnessOptions>('toolHarness', {
  overrides: {
    accepts: (value) =>
      typeof value === 'object' &&
      value !== null &&
      Symbol.iterator in value &&
      Array.from(value as Iterable<unknown>).every((override) =>
        Array.isArray(override) ? override.length === 2 : isRecord(override) && 'provide' in override,
      ),
    fix: '[[OrderService, fakeOrders]], or [{ provide: OrderService, useValue: fakeOrders }]',
  },
  data: RECORD,
});
const TOOLSET = { ...FUNCTION, fix: 'the class: ShopTools' };

/** A toolset that is ready to be called in a test. */
export interface ToolHarness {
  /** All its tools, for a loop: `runToolLoop({ provider, model, tools: harness.tools }, …)`. */
  readonly tools: ToolRegistry;
  /** Calls a tool through the whole pipeline: parse, validate, hydrate, execute. */
  execute(name: string, args?: unknown, scope?: CallScope): Promise<ToolResult>;
}

/**
 * Creates a toolset with injected mocks, for a test; they have no effect outside of it.
 *
 * @throws ToolDeclarationError with all faults of the declaration, like `discoverTools`.
 *
 * @example
 * ```ts
 * const harness = toolHarness(ShopTools, { overrides: [[OrderService, fakeOrders]], data: { userId: 'u1' } });
 * const result = await harness.execute('find_orders', { customerId: 'cus_1' });
 * ```
 */
export function toolHarness(toolset: ClassType, options: ToolHarnessOptions = {}): ToolHarness {
  refuseOptions([
    ...invalidArguments({ of: 'toolHarness', given: { toolset }, rules: { toolset: TOOLSET } }),
    ...invalidOptions(options, OPTIONS),
  ]);
  const { overrides = [], data } = options;
  const pairs = Array.from(
    overrides,
    (override): Override => ('provide' in override ? [override.provide, override.useValue] : override),
  );
  const container = isolatedContainer(toolset, pairs);
  const tools = new ToolRegistry().register(...discoverTools({ toolsets: [toolset], container }));
  return {
    tools,
    execute: (name, args, scope) => tools.executeWithContext(name, args, { data, ...scopeFields(scope) }),
  };
}
