import { type CallScope, OWNER } from '../../core/contract/call.js';
import { type LLMProvider, MODEL, PROVIDER } from '../../core/contract/llm-provider.js';
import { RUN_STORE, type RunStore } from '../../core/contract/run-state.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import {
  type InvalidOption,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import {
  BOOLEAN,
  FILLED_TEXT,
  FUNCTION,
  instanceOf,
  listOf,
  objectOf,
  optionTable,
  protecting,
  required,
  SECRET_KEY,
  secret,
  TEXT,
} from '../../core/kernel/options.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';

/** The scope that somebody entered for a call or a chat. */
export interface ChosenScope extends Pick<CallScope, 'channel' | 'chatId' | 'conversationId' | 'owner'> {
  /** `context.data` of tools. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** The request that tools, guards and providers see: `{ user: { id: 'u1' } }`. */
  readonly request?: Readonly<Record<string, unknown>>;
}

/** A guard, policy, hook or the like that applies to the calls of a tool. */
export interface ToolSurrounding {
  readonly kind: 'policy' | 'hook' | 'guard' | 'interceptor' | 'pipe' | 'filter';
  readonly name: string;
}

/** How tests are written. */
export interface WrittenTests {
  /** The folder of the tests. Existing files are not replaced. */
  readonly folder: string;
  /** Lines that import or create `tools`: `import { tools } from '../src/tools.js';`. */
  readonly setup: string;
  /** The name of a function in these lines that creates the scope for a request: `scopeOf(request, scope)`. */
  readonly scopeOf?: string;
}

/** Options of {@link createInspector}. */
export interface InspectorOptions {
  /** The model of the chat. Default: the offline stand-in. */
  readonly provider?: LLMProvider;
  readonly model?: string;
  readonly systemPrompt?: string;
  /** Also shows and answers the runs of this store. If it has `list`, those of other processes too. */
  readonly store?: RunStore;
  /** The secret of the runs in the store. */
  readonly stateSecret?: string;
  /** Creates the scope from the input on the page. Default: the input without the request. */
  readonly scope?: (chosen: ChosenScope) => CallScope | Promise<CallScope>;
  /**
   * Who answers on the page, as JSON; recorded with the calls. Required to approve calls of tools with
   * `approval.approver`. Default: `{ inspector: true }`.
   */
  readonly answeredBy?: unknown;
  /** The scope in which a run of the store continues. Default: `{ owner }`. */
  readonly scopeOf?: (owner: unknown) => CallScope | Promise<CallScope>;
  /** Further guards and the like to show for a tool. */
  readonly surroundings?: (tool: ToolDefinition) => readonly ToolSurrounding[];
  /** The token of the page. Default: a random token. */
  readonly token?: string;
  /** Further host names, such as `['dev.example:8080']`. With this option other machines can connect. */
  readonly allowedHosts?: readonly string[];
  /** The path below which a server mounts it, such as `/inspector`. Default: the root. */
  readonly path?: string;
  /** Without `true`, `NODE_ENV` must be `development` or `test`. */
  readonly allowInProduction?: boolean;
  readonly tests?: WrittenTests;
  /** A folder for recordings. */
  readonly recordings?: string;
}

const SHORTEST_TOKEN = 16;

const REGISTRY = instanceOf(ToolRegistry, 'a ToolRegistry');

const OPTIONS = optionTable<InspectorOptions>(
  'createInspector',
  {
    provider: PROVIDER,
    model: MODEL,
    systemPrompt: TEXT,
    store: RUN_STORE,
    stateSecret: protecting(SECRET_KEY),
    scope: protecting(FUNCTION),
    answeredBy: protecting(OWNER),
    scopeOf: protecting(FUNCTION),
    surroundings: FUNCTION,
    token: protecting(
      secret({
        accepts: (value) => typeof value === 'string' && value.length >= SHORTEST_TOKEN,
        fix: `a random string of at least ${SHORTEST_TOKEN} characters`,
      }),
    ),
    allowedHosts: protecting(listOf(FILLED_TEXT, "['dev.example:8080']")),
    path: { accepts: (value) => /^\/[\w./-]*[^/]$/.test(String(value)), fix: "'/inspector'" },
    allowInProduction: protecting(BOOLEAN),
    tests: objectOf<WrittenTests>(
      { folder: required(FILLED_TEXT), setup: required(FILLED_TEXT), scopeOf: FILLED_TEXT },
      { fix: "{ folder: 'test', setup: \"import { tools } from '../src/tools.js';\" }" },
    ),
    recordings: FILLED_TEXT,
  },
  { port: 'inspector.listen({ port })', host: 'inspector.listen({ host })', tools: 'the first argument' },
);

const SAFE_PLACES: ReadonlySet<unknown> = new Set(['development', 'test']);

/** Whether an inspector is allowed here. An unset `NODE_ENV` counts as production. */
export function mayInspect({ allowInProduction }: Pick<InspectorOptions, 'allowInProduction'>): boolean {
  return allowInProduction === true || SAFE_PLACES.has(process.env.NODE_ENV);
}

/**
 * Checks the arguments of `createInspector`.
 *
 * @throws InvalidOptionsError (521), also if `NODE_ENV` is neither `development` nor `test`.
 */
export function checkInspector(registry: unknown, options: InspectorOptions): void {
  const faults: InvalidOption[] = [
    ...invalidArguments({ of: 'createInspector', given: { registry }, rules: { registry: REGISTRY } }),
    ...invalidOptions(options, OPTIONS),
  ];
  if (!mayInspect(options ?? {})) {
    const { NODE_ENV } = process.env;
    const problem = `NODE_ENV is ${NODE_ENV || 'not set'}: in production, any user with the token could call every tool`;
    const fix = 'NODE_ENV=development (or test) on your machine, or allowInProduction: true';
    faults.push({ where: OPTIONS.of, option: 'allowInProduction', problem, fix });
  }
  refuseOptions(faults);
}
