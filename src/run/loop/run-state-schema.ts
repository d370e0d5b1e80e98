import type { JsonSchema } from '../../core/contract/json-schema.js';
import { NEWEST_STATE_VERSION } from '../../core/contract/run-state.js';

export const TEXT_SCHEMA: JsonSchema = { type: 'string' };
export const COUNT_SCHEMA: JsonSchema = { type: 'integer', minimum: 0 };
const COUNTS: JsonSchema = {
  type: 'array',
  items: { type: 'array', prefixItems: [TEXT_SCHEMA, COUNT_SCHEMA], minItems: 2, maxItems: 2 },
};

const RESULT = object({
  forLLM: TEXT_SCHEMA,
  silent: { type: 'boolean' },
  isError: { type: 'boolean' },
  async: { type: 'boolean' },
});

const RECORD = object({
  id: TEXT_SCHEMA,
  name: TEXT_SCHEMA,
  repairs: list(TEXT_SCHEMA),
  removed: list(TEXT_SCHEMA),
  attempts: COUNT_SCHEMA,
  durationMs: { type: 'number' },
  status: TEXT_SCHEMA,
  result: RESULT,
});

// Arguments are the model's text, which may be anything.
const CALL = { id: TEXT_SCHEMA, name: TEXT_SCHEMA, arguments: {} };
const ITEMS = { providerItems: { type: 'object' }, wire: object({ name: TEXT_SCHEMA, text: TEXT_SCHEMA }) };

const KIND = { enum: ['client', 'approval', 'question', 'outcome'] };

const WAIT = object(
  { kind: KIND, index: COUNT_SCHEMA },
  {
    message: TEXT_SCHEMA,
    decisions: list({ enum: ['approve', 'edit', 'refuse'] }),
    approver: { enum: ['not-the-owner', 'function'] },
    expiresAt: TEXT_SCHEMA,
    inner: object({
      run: COUNT_SCHEMA,
      id: TEXT_SCHEMA,
      callId: TEXT_SCHEMA,
      tool: TEXT_SCHEMA,
      arguments: { type: 'object' },
    }),
  },
);

const JOURNAL = object(
  {
    arguments: { type: 'object' },
    answers: list(object({ index: COUNT_SCHEMA, message: TEXT_SCHEMA })),
    once: list(object({ key: TEXT_SCHEMA })),
  },
  {
    given: list(object({ kind: KIND, index: COUNT_SCHEMA })),
    edited: object({ original: { type: 'object' } }),
    standing: object({ id: TEXT_SCHEMA }),
    remember: object({ scope: TEXT_SCHEMA }),
    reruns: COUNT_SCHEMA,
    reasks: COUNT_SCHEMA,
  },
);

/** A history, as far as the loop relies on its form. */
export const MESSAGES: JsonSchema = list(object({ role: TEXT_SCHEMA }));

const PROGRESS_PARTS = {
  toolCalls: list(RECORD),
  iterations: COUNT_SCHEMA,
  usage: object({ inputTokens: COUNT_SCHEMA, outputTokens: COUNT_SCHEMA, totalTokens: COUNT_SCHEMA }),
  retries: object({ byTool: COUNTS, unknown: COUNT_SCHEMA }, { total: COUNT_SCHEMA }),
};

/** States of version 1 have no permissions; without a loop guard, its data is absent. */
const OPTIONAL_PARTS = {
  turnOf: TEXT_SCHEMA,
  tools: list(TEXT_SCHEMA),
  model: TEXT_SCHEMA,
  spent: object({
    tokens: COUNT_SCHEMA,
    calls: COUNT_SCHEMA,
    steps: COUNT_SCHEMA,
    timeMs: { type: 'number', minimum: 0 },
    tools: { type: 'object' },
  }),
  granted: list(object({ account: TEXT_SCHEMA, part: TEXT_SCHEMA, amount: COUNT_SCHEMA })),
  guard: object({ seen: list(TEXT_SCHEMA), counts: COUNTS }),
  trace: object({ traceparent: TEXT_SCHEMA }, { tracestate: TEXT_SCHEMA, at: { type: 'number' } }),
};

/** The progress of a run, without its messages. */
export const PROGRESS: JsonSchema = object(PROGRESS_PARTS, OPTIONAL_PARTS);

/** Their states are checked when they are continued. */
const INNER = list(object({ run: COUNT_SCHEMA }, { state: { type: 'object' }, result: { type: 'object' } }));

const CALLS = list({
  type: 'object',
  anyOf: [
    object({ status: { const: 'settled' }, record: RECORD }, ITEMS),
    object(
      { status: { const: 'waiting' }, ...CALL, waits: list(WAIT), journal: JOURNAL },
      { ...ITEMS, inner: INNER, asks: object({ account: TEXT_SCHEMA, part: TEXT_SCHEMA }) },
    ),
    object({ status: { const: 'held' }, ...CALL }, ITEMS),
  ],
});

/** The schema of a run's state, as far as the loop relies on it; states come from outside. */
export const RUN_STATE_SCHEMA: JsonSchema = {
  ...object(
    {
      version: { type: 'integer', minimum: 1, maximum: NEWEST_STATE_VERSION },
      runId: TEXT_SCHEMA,
      revision: COUNT_SCHEMA,
      messages: MESSAGES,
      open: object({ content: TEXT_SCHEMA, calls: CALLS }, { reasoning: TEXT_SCHEMA, ...ITEMS }),
      pending: list(object({ id: TEXT_SCHEMA })),
      ...PROGRESS_PARTS,
    },
    OPTIONAL_PARTS,
  ),
  if: { properties: { version: { minimum: 2 } } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['tools', 'model'] },
};

type Properties = Readonly<Record<string, JsonSchema>>;

export function object(properties: Properties, optional: Properties = {}): JsonSchema {
  return {
    type: 'object',
    properties: { ...properties, ...optional },
    required: Object.keys(properties),
  };
}

export function list(items: JsonSchema): JsonSchema {
  return { type: 'array', items };
}
