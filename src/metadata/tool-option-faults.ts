import { isRecord } from '../contract/is-record.js';
import {
  mistakenNames,
  type OptionFault,
  type OptionRules,
  optionFaults,
  wrongValues,
} from './option-faults.js';
import { ANYTHING, BOOLEAN, FUNCTION, LIMIT, MILLISECONDS, oneOf, TEXT } from './option-rule.js';

const ANNOTATIONS: OptionRules = {
  of: 'annotations',
  options: { title: TEXT, readOnly: BOOLEAN, destructive: BOOLEAN, idempotent: BOOLEAN, openWorld: BOOLEAN },
  meant: {
    readOnlyHint: 'annotations: { readOnly: … }',
    destructiveHint: 'annotations: { destructive: … }',
    idempotentHint: 'annotations: { idempotent: … }',
    openWorldHint: 'annotations: { openWorld: … }',
  },
};

const MEANT = {
  ...ANNOTATIONS.meant,
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

const BEHAVIOUR = {
  timeoutMs: MILLISECONDS,
  sequential: BOOLEAN,
  approval: {
    accepts: (value: unknown) => typeof value === 'boolean' || typeof value === 'function',
    fix: 'true, false, or a function that says which',
  },
  background: BOOLEAN,
  execution: oneOf('server', 'client'),
  repair: BOOLEAN,
  coerce: BOOLEAN,
  maxResultChars: LIMIT,
  retries: LIMIT,
  annotations: { accepts: isRecord, fix: '{ readOnly: true, … }' },
  strict: BOOLEAN,
  returnDirect: BOOLEAN,
};

const SCHEMAS = { parameters: ANYTHING, output: ANYTHING };

const TOOL: OptionRules = {
  of: '@Tool',
  options: { name: TEXT, description: TEXT, ...SCHEMAS, ...BEHAVIOUR },
  meant: MEANT,
};

/** A definition may be given again, changed: `defineTool({ ...tool, name })`. */
const DEFINED: OptionRules = {
  of: 'defineTool',
  options: {
    name: ANYTHING,
    description: TEXT,
    execute: FUNCTION,
    ...SCHEMAS,
    ...BEHAVIOUR,
    hydrate: FUNCTION,
    observesSignal: BOOLEAN,
    ignoresContext: BOOLEAN,
    container: ANYTHING,
  },
  meant: MEANT,
};

const AGENT_TOOL: OptionRules = {
  of: 'agentTool',
  options: { label: TEXT, description: TEXT, ...BEHAVIOUR },
  meant: MEANT,
};

/** What is wrong with the options of `@Tool`. */
export function toolOptionFaults(options: unknown): readonly OptionFault[] {
  return [...optionFaults(options, TOOL), ...annotationFaults(options)];
}

/** What is wrong with the options of `defineTool`, its name and its schemas apart. */
export function definedToolFaults(options: unknown): readonly OptionFault[] {
  return [...optionFaults(options, DEFINED), ...annotationFaults(options)];
}

/** What is wrong with the options of `agentTool`; an instance of a class has members of its own beside them. */
export function agentToolFaults(tool: object): readonly OptionFault[] {
  const isPlain = Object.getPrototypeOf(tool) === Object.prototype;
  return [
    ...wrongValues(tool, AGENT_TOOL),
    ...(isPlain ? mistakenNames(tool, AGENT_TOOL) : []),
    ...annotationFaults(tool),
  ];
}

const HAND_WRITTEN: OptionRules = { of: 'a tool', options: BEHAVIOUR };

/** What is wrong with the options that a hand-written tool carries. */
export function behaviourFaults(tool: object): readonly OptionFault[] {
  const { annotations } = tool as { readonly annotations?: unknown };
  return [
    ...wrongValues(tool, HAND_WRITTEN),
    ...(isRecord(annotations) ? wrongValues(annotations, ANNOTATIONS) : []),
  ];
}

function annotationFaults(options: unknown): readonly OptionFault[] {
  const annotations = isRecord(options) ? options.annotations : undefined;
  return isRecord(annotations) ? optionFaults(annotations, ANNOTATIONS) : [];
}

const TOOLSET: OptionRules = {
  of: '@Toolset',
  options: {
    name: TEXT,
    prefix: TEXT,
    description: TEXT,
    scope: oneOf('singleton', 'transient', 'scoped'),
  },
};

/** What is wrong with the options of `@Toolset`. */
export function toolsetOptionFaults(options: unknown): readonly OptionFault[] {
  return optionFaults(options, TOOLSET);
}
