import type {
  ApprovalOptions,
  BackgroundOptions,
  Companion,
  PromptOptions,
  RememberOptions,
  ResourceOptions,
  ResultCaching,
  ToolAnnotations,
  ToolBehaviour,
  ToolOptions,
  ToolsetOptions,
} from '../contract/declaration.js';

import { JOB_QUEUE, type JobBackoff } from '../contract/job-engine.js';
import type { AsyncTool, ContextualTool, ToolDefinition } from '../contract/tool.js';
import type { UnplacedFault } from '../errors/author-fault.js';
import { type Fields, isRecord } from '../kernel/json.js';
import {
  ANY_VALUE,
  BOOLEAN,
  COUNT,
  either,
  FUNCTION,
  LIMIT,
  listOf,
  MILLISECONDS,
  mistakenNames,
  NUMBER,
  type OptionFault,
  type OptionRule,
  type OptionTable,
  objectOf,
  oneOf,
  optionFaults,
  optionTable,
  PAUSE,
  protecting,
  RECORD,
  type RulesOf,
  required,
  TEXT,
  WHOLE,
  wrongValues,
} from '../kernel/options.js';
import type { DeclaredKind } from './class-record.js';

const ANNOTATION_NAMES = {
  readOnlyHint: 'annotations: { readOnly: … }',
  destructiveHint: 'annotations: { destructive: … }',
  idempotentHint: 'annotations: { idempotent: … }',
  openWorldHint: 'annotations: { openWorld: … }',
};

const ANNOTATIONS = objectOf<ToolAnnotations>(
  { title: TEXT, readOnly: BOOLEAN, destructive: BOOLEAN, idempotent: BOOLEAN, openWorld: BOOLEAN },
  { fix: '{ readOnly: true, … }', meant: ANNOTATION_NAMES },
);

const MEANT = {
  ...ANNOTATION_NAMES,
  title: "annotations: { title: '…' }",
  readOnly: 'annotations: { readOnly: … }',
  destructive: 'annotations: { destructive: … }',
  idempotent: 'annotations: { idempotent: … }',
  openWorld: 'annotations: { openWorld: … }',
  timeout: 'timeoutMs: …',
  maxRetries: 'retries: …',
  needsApproval: 'approval: true, or a function',
  requireApproval: 'approval: true, or a function',
  requiresApproval: 'approval: true, or a function',
  inputSchema: 'parameters: …',
  outputSchema: 'output: …',
};

function atMost(most: number, rule: OptionRule, fix: string): OptionRule {
  return { accepts: (value) => rule.accepts(value) && Number(value) <= most, fix };
}

// Engines cannot represent later dates: such a job would run immediately, or never.
const DELAY = atMost(315_360_000_000, PAUSE, 'milliseconds from 0 to 315,360,000,000 (ten years)');

const BACKOFF = objectOf<JobBackoff>(
  { type: required(oneOf('fixed', 'exponential')), delay: required(DELAY) },
  { fix: "{ type: 'exponential', delay: 1000 }" },
);

const ANY_BACKGROUND = objectOf<BackgroundOptions>(
  {
    attempts: atMost(1_000_000, COUNT, 'a whole number from 1 to 1,000,000'),
    backoff: BACKOFF,
    priority: atMost(1_000_000, WHOLE, 'a whole number from 0 (first) to 1,000,000'),
    delay: DELAY,
    queue: JOB_QUEUE,
    concurrency: COUNT,
    revivals: { ...WHOLE, fix: 'how often work is restarted after its worker died: 0 or more' },
  },
  { fix: '{ attempts: 3 }', meant: { retries: 'attempts: …', delayMs: 'delay: …' } },
);

const BACKGROUND: OptionRule = {
  ...ANY_BACKGROUND,
  accepts: (value) => ANY_BACKGROUND.accepts(value) && backoffFaults(value, '').length === 0,
  explain: (value, option) => [
    ...(ANY_BACKGROUND.explain?.(value, option) ?? []),
    ...backoffFaults(value, option),
  ],
};

/** A pause between attempts that has no effect, because there is only one attempt. */
function backoffFaults(value: unknown, option: string): readonly OptionFault[] {
  if (!isRecord(value) || value.backoff === undefined || value.attempts !== undefined) return [];
  const problem = `${option}.backoff is the pause between attempts, but without attempts there is only one`;
  return [{ option: `${option}.backoff`, problem, fix: `${option}.attempts: 3; or no backoff` }];
}

const NEED: OptionRule = {
  accepts: (value) => typeof value === 'boolean' || typeof value === 'function',
  fix: 'true, false, or a function that returns either',
};

const DECISIONS = listOf(oneOf('approve', 'edit', 'refuse'), "['approve', 'refuse']");

const REMEMBER = objectOf<RememberOptions>(
  {
    scopes: required(listOf(oneOf('run', 'conversation', 'user'), "['run', 'conversation']")),
    by: either(FUNCTION, listOf(TEXT, "['customerId']")),
    maxMs: MILLISECONDS,
  },
  { fix: "{ scopes: ['conversation'], by: ['customerId'] }" },
);

const APPROVAL = objectOf<ApprovalOptions>(
  {
    when: NEED,
    approver: protecting({
      ...either(oneOf('may-answer', 'not-the-owner'), FUNCTION),
      fix: "'may-answer', 'not-the-owner', or a function ({ answeredBy, owner, call }) => true or false",
    }),
    decisions: {
      ...DECISIONS,
      accepts: (value) => DECISIONS.accepts(value) && (value as readonly unknown[]).length > 0,
    },
    title: TEXT,
    description: either(TEXT, FUNCTION),
    risk: oneOf('low', 'medium', 'high'),
    expiresInMs: MILLISECONDS,
    remember: REMEMBER,
  },
  {
    fix: "{ when: (args) => …, decisions: ['approve', 'refuse'], title: '…' }",
    meant: { allowedDecisions: 'decisions: […]', message: "description: '…'", timeoutMs: 'expiresInMs: …' },
  },
);

const CACHING = objectOf<ResultCaching>(
  { lifetimeMs: MILLISECONDS, shared: BOOLEAN },
  { fix: '{ shared: true }', meant: { ttl: 'lifetimeMs: …', ttlMs: 'lifetimeMs: …' } },
);
/** The characters that providers accept. */
const NAMESPACE: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^[a-zA-Z0-9_-]{1,64}$/.test(value),
  fix: "letters, digits, _ and -, at most 64: 'billing'",
};

/** A scope token of RFC 6749, section 3.3. */
const SCOPE_TOKEN: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value),
  fix: "'orders:write'",
};

const BEHAVIOUR: RulesOf<ToolBehaviour> = {
  timeoutMs: MILLISECONDS,
  sequential: BOOLEAN,
  approval: protecting({
    ...either(APPROVAL, NEED),
    fix: 'true, false, a function that returns either, or { when, title, … }',
  }),
  background: either(BACKGROUND, BOOLEAN),
  execution: oneOf('server', 'client'),
  repair: BOOLEAN,
  coerce: BOOLEAN,
  maxResultChars: LIMIT,
  retries: LIMIT,
  annotations: ANNOTATIONS,
  strict: BOOLEAN,
  input: oneOf('json', 'text'),
  returnDirect: BOOLEAN,
  cache: either(CACHING, BOOLEAN),
  cost: either(PAUSE, FUNCTION),
  defer: BOOLEAN,
  namespace: NAMESPACE,
  scopes: protecting(listOf(SCOPE_TOKEN, "['orders:write']")),
  public: protecting(BOOLEAN),
  _meta: RECORD,
  icons: listOf(RECORD, "[{ src: '…' }]"),
  // Checked by the MCP server.
  ui: RECORD,
};

function companions(rule: OptionRule): Readonly<Record<Companion, OptionRule>> {
  return { reconcile: rule, compensate: rule, touches: rule, preview: rule };
}

const METHOD_NAME = { ...TEXT, fix: "the name of a method of the same class: 'findPayment'" };

const TOOL = optionTable<ToolOptions>(
  '@Tool',
  {
    name: TEXT,
    description: TEXT,
    parameters: ANY_VALUE,
    output: ANY_VALUE,
    ...companions(METHOD_NAME),
    ...BEHAVIOUR,
  },
  MEANT,
);

const { scopes, public: isPublic, _meta, icons, timeoutMs } = BEHAVIOUR;

const PROMPT_RULES: RulesOf<PromptOptions> = {
  name: TEXT,
  title: TEXT,
  description: TEXT,
  scopes,
  public: isPublic,
  _meta,
  icons,
  timeoutMs,
};

const PROMPT = optionTable<PromptOptions>('@Prompt', PROMPT_RULES);

const RESOURCE = optionTable<ResourceOptions>('@Resource', {
  ...PROMPT_RULES,
  mimeType: TEXT,
  audience: listOf(oneOf('user', 'assistant'), "['user']"),
  priority: {
    accepts: (value) => NUMBER.accepts(value) && Number(value) >= 0 && Number(value) <= 1,
    fix: 'a number from 0 to 1',
  },
  ttlMs: PAUSE,
  cacheScope: oneOf('public', 'private'),
});

/** A completion has no options. */
const TABLES: Readonly<Record<DeclaredKind, OptionTable>> = {
  tool: TOOL,
  prompt: PROMPT,
  resource: RESOURCE,
  completion: PROMPT,
};

const DEFINITION: RulesOf<ToolDefinition> = {
  name: ANY_VALUE,
  description: TEXT,
  execute: FUNCTION,
  toolset: ANY_VALUE,
  served: ANY_VALUE,
  parameters: ANY_VALUE,
  output: ANY_VALUE,
  ...BEHAVIOUR,
  hydrate: FUNCTION,
  observesSignal: BOOLEAN,
  ignoresContext: BOOLEAN,
  isOutputInferred: BOOLEAN,
  returnsContent: BOOLEAN,
  fillsDefaults: BOOLEAN,
  checkedAs: ANY_VALUE,
  ...companions(FUNCTION),
  container: ANY_VALUE,
  replacedBy: FUNCTION,
};

/** An existing definition may be passed again with changes: `defineTool({ ...tool, name })`. */
const DEFINED = optionTable<ToolDefinition>('defineTool', DEFINITION, MEANT);

/** The given options of a definition, including getters of a class instance. */
export function givenOptions<Options extends object>(given: Options): Options {
  const found: Record<string, unknown> = {};
  for (const name of DEFINED.rules.keys()) {
    const value = (given as Fields)[name];
    if (value !== undefined) found[name] = value;
  }
  return found as Options;
}

/** The members of every tool are checked by the function that registers it. */
const MEMBERS = { name: ANY_VALUE, description: ANY_VALUE, parameters: ANY_VALUE, execute: ANY_VALUE };

const AGENT_TOOL = optionTable<Omit<ToolOptions, Companion> & typeof MEMBERS & { readonly label: string }>(
  'agentTool',
  { ...MEMBERS, description: TEXT, label: TEXT, output: ANY_VALUE, ...BEHAVIOUR },
  MEANT,
);

const HAND_WRITTEN = optionTable<ToolDefinition & ContextualTool & AsyncTool>('a tool', {
  ...DEFINITION,
  ...MEMBERS,
  setContext: ANY_VALUE,
  setCallback: ANY_VALUE,
});

const TOOLSET = optionTable<ToolsetOptions>('@Toolset', {
  name: TEXT,
  prefix: {
    // The rest of the 64 characters of a tool's name is for `_` and the method's name.
    accepts: (value) => typeof value === 'string' && /^([a-zA-Z_][a-zA-Z0-9_-]{0,61})?$/.test(value),
    fix: "letters, digits, _ and -, not starting with a digit or -: 'crm'",
  },
  description: TEXT,
  scope: oneOf('singleton', 'transient', 'scoped'),
  defer: BOOLEAN,
  namespace: NAMESPACE,
});

/** Checks the options of `@Tool`, `@Prompt` and `@Resource`. */
export function toolOptionFaults(options: unknown, kind: DeclaredKind): readonly OptionFault[] {
  return [...optionFaults(options, TABLES[kind]), ...contradictions(options)];
}

/** Checks the options of `defineTool`, except its name and schemas. */
export function definedToolFaults(options: unknown): readonly OptionFault[] {
  const isClients = isRecord(options) && !Object.hasOwn(options, 'execute');
  return [
    ...optionFaults(options, DEFINED),
    ...contradictions(isClients ? { ...options, execution: 'client' } : options),
  ];
}

/** Checks the options of `agentTool`. */
export function agentToolFaults(tool: object): readonly OptionFault[] {
  if (!isRecord(tool)) return optionFaults(tool, AGENT_TOOL);
  return [...wrongValues(tool, AGENT_TOOL), ...slips(tool, AGENT_TOOL), ...contradictions(tool)];
}

/** Checks the options of a hand-written tool. */
export function behaviourFaults(tool: object): readonly OptionFault[] {
  return [...wrongValues(tool, HAND_WRITTEN), ...slips(tool, HAND_WRITTEN), ...contradictions(tool)];
}

/** Options that exclude each other. */
function contradictions(options: unknown): readonly OptionFault[] {
  if (!isRecord(options)) return [];
  const faults: OptionFault[] = [];
  if (options.execution === 'client' && options.background)
    faults.push({
      option: 'background',
      problem: 'its `background` has no effect, because the client executes it',
      fix: 'no `background`; or an `execute` that runs here',
    });
  if (options.public === true && Array.isArray(options.scopes) && options.scopes.length > 0)
    faults.push({
      option: 'public',
      problem: 'it is public and has `scopes`',
      fix: '@Public() or `scopes`',
    });
  return faults;
}

/** An object may have other members in addition to the options, and an instance of a class any members. */
function slips(tool: object, table: OptionTable): readonly OptionFault[] {
  return Object.getPrototypeOf(tool) === Object.prototype ? mistakenNames(tool, table) : [];
}

/** Checks the options of `@Toolset`. */
export function toolsetOptionFaults(options: unknown): readonly OptionFault[] {
  return optionFaults(options, TOOLSET);
}

/** Why a schema, or a part of it, is undefined. */
export const UNLOADED_SCHEMA: readonly string[] = unloaded('the schema');

/** A fault if `parameters` is present but undefined: the tool would silently take no arguments. */
export function unloadedSchemaFaults(options: unknown): readonly UnplacedFault[] {
  if (!isRecord(options) || !Object.hasOwn(options, 'parameters')) return [];
  const { parameters } = options;
  if (parameters !== undefined && parameters !== null) return [];
  return [
    {
      problem: `its \`parameters\` are ${parameters}`,
      causes: UNLOADED_SCHEMA,
      fix: 'the schema in its own file; or no `parameters` if there are no arguments',
    },
  ];
}

/** A fault if `execute` is present but undefined: the call would silently be left to the client. */
export function unloadedExecuteFaults(options: unknown): readonly UnplacedFault[] {
  if (!isRecord(options) || !Object.hasOwn(options, 'execute') || options.execute !== undefined) return [];
  return [
    {
      problem: 'its `execute` is undefined',
      causes: unloaded('the function'),
      fix: 'the function in its own file; or no `execute` if the client executes it',
    },
  ];
}

function unloaded(what: string): readonly string[] {
  return [
    `${what} comes from a file that imports this one and is not loaded yet`,
    'the imported file does not export its name',
  ];
}
