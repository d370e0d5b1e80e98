import { type CallScope, isNobody } from '../../core/contract/call.js';
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
  JSON_VALUE,
  listOf,
  objectOf,
  optionTable,
  protecting,
  required,
  secret,
  TEXT,
} from '../../core/kernel/options.js';
import { ToolRegistry } from '../../run/call/tool-registry.js';

/** The user's choice for a call or a chat. */
export interface ChosenScope extends Pick<CallScope, 'channel' | 'chatId' | 'conversationId' | 'owner'> {
  /** What tools are to find in `context.data`. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** What is to stand for the request, where tools, guards or providers look at one: `{ user: { id: 'u1' } }`. */
  readonly request?: Readonly<Record<string, unknown>>;
}

/** Something that stands around the calls of a tool. */
export interface ToolSurrounding {
  readonly kind: 'policy' | 'hook' | 'guard' | 'interceptor' | 'pipe' | 'filter';
  readonly name: string;
}

/** How tests are written of what was recorded. */
export interface WrittenTests {
  /** Where they are written; no file that is there is replaced. */
  readonly folder: string;
  /** Lines that give a test its registry, as `tools`: `import { tools } from '../src/tools.js';`. */
  readonly setup: string;
  /** The function of these lines that makes the scope of a request, `scopeOf(request, scope)`; default: none is given. */
  readonly scopeOf?: string;
}

/** Options of {@link createInspector}. */
export interface InspectorOptions {
  /** The model that chats of the page ask; without it they ask the offline stand-in. */
  readonly provider?: LLMProvider;
  readonly model?: string;
  readonly systemPrompt?: string;
  /** The runs of this store are shown and answered, too; one with `list` shows those of other processes. */
  readonly store?: RunStore;
  /** That of the runs in the store, where they have one. */
  readonly stateSecret?: string;
  /** The scope of a call or a chat for what was chosen at the page; default: what was chosen, without a request. */
  readonly scope?: (chosen: ChosenScope) => CallScope | Promise<CallScope>;
  /**
   * Who answers at the page, as any JSON: recorded with the calls. Calls whose tool says who may approve them
   * (`approval.approver`) can be approved at the page only where this is given. Default: `{ inspector: true }` is recorded.
   */
  readonly answeredBy?: unknown;
  /** In what scope a run of the store goes on, for its owner; default: `{ owner }`. */
  readonly scopeOf?: (owner: unknown) => CallScope | Promise<CallScope>;
  /** What stands around the calls of a tool, beside the registry's policy. */
  readonly surroundings?: (tool: ToolDefinition) => readonly ToolSurrounding[];
  /** What a page has to bring; default: a new one for each inspector. */
  readonly token?: string;
  /** Names under which it may be called beside those of this machine: `['dev.example:8080']`. Then also from afar. */
  readonly allowedHosts?: readonly string[];
  /** Where a server mounts it: `/inspector`. Default: at its root. */
  readonly path?: string;
  /** Without `true`, there is one only where `NODE_ENV` is `development` or `test`. */
  readonly allowInProduction?: boolean;
  readonly tests?: WrittenTests;
  /** A folder where recordings are kept, so that they can be replayed after a change of code. */
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
    stateSecret: protecting(secret(FILLED_TEXT)),
    scope: protecting(FUNCTION),
    answeredBy: protecting({
      accepts: (value) => JSON_VALUE.accepts(value) && !isNobody(value),
      fix: "JSON that says who it is: { user: 'u1' }",
    }),
    scopeOf: protecting(FUNCTION),
    surroundings: FUNCTION,
    token: protecting(
      secret({
        accepts: (value) => typeof value === 'string' && value.length >= SHORTEST_TOKEN,
        fix: `a text of ${SHORTEST_TOKEN} characters or more that nobody can guess`,
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

/** Whether there may be one here: a place that does not say that it is none for production counts as production. */
export function mayInspect({ allowInProduction }: Pick<InspectorOptions, 'allowInProduction'>): boolean {
  return allowInProduction === true || SAFE_PLACES.has(process.env.NODE_ENV);
}

function inProduction(): InvalidOption {
  const { NODE_ENV } = process.env;
  return {
    where: 'createInspector',
    option: 'allowInProduction',
    problem: `NODE_ENV is ${NODE_ENV || 'not set'}: in production, whoever has the token could call every tool`,
    fix: 'NODE_ENV=development (or test) where you develop, or allowInProduction: true',
  };
}

/**
 * Refuses what an inspector cannot be made of.
 *
 * @throws InvalidOptionsError (521), also where `NODE_ENV` is neither `development` nor `test`.
 */
export function checkInspector(registry: unknown, options: InspectorOptions): void {
  refuseOptions([
    ...invalidArguments({ of: 'createInspector', given: { registry }, rules: { registry: REGISTRY } }),
    ...invalidOptions(options, OPTIONS),
    ...(mayInspect(options ?? {}) ? [] : [inProduction()]),
  ]);
}
