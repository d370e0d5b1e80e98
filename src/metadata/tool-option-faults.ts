import type { ToolDefinition } from '../contract/tool-definition.js';
import type { ToolAnnotations, ToolBehaviour, ToolOptions } from '../contract/tool-options.js';
import type { ToolsetOptions } from '../contract/toolset-options.js';
import {
  ANYTHING,
  BOOLEAN,
  FUNCTION,
  LIMIT,
  MILLISECONDS,
  type OptionFault,
  oneOf,
  protecting,
  TEXT,
} from '../kernel/option-rules.js';
import {
  mistakenNames,
  objectOf,
  optionFaults,
  optionTable,
  type RulesOf,
  wrongValues,
} from '../kernel/options.js';

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

const BEHAVIOUR: RulesOf<ToolBehaviour> = {
  timeoutMs: MILLISECONDS,
  sequential: BOOLEAN,
  approval: protecting({
    accepts: (value) => typeof value === 'boolean' || typeof value === 'function',
    fix: 'true, false, or a function that says which',
  }),
  background: BOOLEAN,
  execution: oneOf('server', 'client'),
  repair: BOOLEAN,
  coerce: BOOLEAN,
  maxResultChars: LIMIT,
  retries: LIMIT,
  annotations: ANNOTATIONS,
  strict: BOOLEAN,
  returnDirect: BOOLEAN,
};

const TOOL = optionTable<ToolOptions>(
  '@Tool',
  { name: TEXT, description: TEXT, parameters: ANYTHING, output: ANYTHING, ...BEHAVIOUR },
  MEANT,
);

/** A definition may be given again, changed: `defineTool({ ...tool, name })`. */
const DEFINED = optionTable<ToolDefinition>(
  'defineTool',
  {
    name: ANYTHING,
    description: TEXT,
    execute: FUNCTION,
    toolset: ANYTHING,
    parameters: ANYTHING,
    output: ANYTHING,
    ...BEHAVIOUR,
    hydrate: FUNCTION,
    observesSignal: BOOLEAN,
    ignoresContext: BOOLEAN,
    isOutputInferred: BOOLEAN,
    returnsContent: BOOLEAN,
    fillsDefaults: BOOLEAN,
    checkedAs: ANYTHING,
    container: ANYTHING,
  },
  MEANT,
);

/** What is given of a definition; of an instance of a class also what it has by getters. */
export function givenOptions<Options extends object>(given: Options): Options {
  const named = Array.from(DEFINED.rules.keys(), (name) => [name, Reflect.get(given, name)] as const);
  return Object.fromEntries(named.filter(([, value]) => value !== undefined)) as Options;
}

const AGENT_TOOL = optionTable<ToolBehaviour & { readonly label: string; readonly description: string }>(
  'agentTool',
  { label: TEXT, description: TEXT, ...BEHAVIOUR },
  MEANT,
);

const HAND_WRITTEN = optionTable<ToolBehaviour>('a tool', BEHAVIOUR);

const TOOLSET = optionTable<ToolsetOptions>('@Toolset', {
  name: TEXT,
  prefix: TEXT,
  description: TEXT,
  scope: oneOf('singleton', 'transient', 'scoped'),
});

/** What is wrong with the options of `@Tool`. */
export function toolOptionFaults(options: unknown): readonly OptionFault[] {
  return optionFaults(options, TOOL);
}

/** What is wrong with the options of `defineTool`, its name and its schemas apart. */
export function definedToolFaults(options: unknown): readonly OptionFault[] {
  return optionFaults(options, DEFINED);
}

/** What is wrong with the options of `agentTool`; an instance of a class has members of its own beside them. */
export function agentToolFaults(tool: object): readonly OptionFault[] {
  const isPlain = Object.getPrototypeOf(tool) === Object.prototype;
  return [...wrongValues(tool, AGENT_TOOL), ...(isPlain ? mistakenNames(tool, AGENT_TOOL) : [])];
}

/** What is wrong with the options that a hand-written tool carries. */
export function behaviourFaults(tool: object): readonly OptionFault[] {
  return wrongValues(tool, HAND_WRITTEN);
}

/** What is wrong with the options of `@Toolset`. */
export function toolsetOptionFaults(options: unknown): readonly OptionFault[] {
  return optionFaults(options, TOOLSET);
}
