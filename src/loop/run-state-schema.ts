import type { JsonSchema } from '../contract/json-schema.js';

export const TEXT: JsonSchema = { type: 'string' };
export const COUNT: JsonSchema = { type: 'integer', minimum: 0 };
const COUNTS: JsonSchema = {
  type: 'array',
  items: { type: 'array', prefixItems: [TEXT, COUNT], minItems: 2, maxItems: 2 },
};

const RESULT = object({
  forLLM: TEXT,
  silent: { type: 'boolean' },
  isError: { type: 'boolean' },
  async: { type: 'boolean' },
});

const RECORD = object({
  id: TEXT,
  name: TEXT,
  repairs: list(TEXT),
  removed: list(TEXT),
  attempts: COUNT,
  durationMs: { type: 'number' },
  status: TEXT,
  result: RESULT,
});

// Arguments are what the model sent, which may be anything.
const CALL = { id: TEXT, name: TEXT, arguments: {} };
const ITEMS = { providerItems: { type: 'object' }, wire: object({ name: TEXT, text: TEXT }) };

const KIND = { enum: ['client', 'approval', 'question', 'outcome'] };

const WAIT = object(
  { kind: KIND, index: COUNT },
  {
    message: TEXT,
    decisions: list({ enum: ['approve', 'edit', 'refuse'] }),
    approver: { enum: ['not-the-owner', 'function'] },
    expiresAt: TEXT,
    inner: object({ run: COUNT, id: TEXT, callId: TEXT, tool: TEXT, arguments: { type: 'object' } }),
  },
);

const JOURNAL = object(
  {
    arguments: { type: 'object' },
    answers: list(object({ index: COUNT, message: TEXT })),
    once: list(object({ key: TEXT })),
  },
  {
    given: list(object({ kind: KIND, index: COUNT })),
    edited: object({ original: { type: 'object' } }),
    standing: object({ id: TEXT }),
    remember: object({ scope: TEXT }),
    reruns: COUNT,
    reasks: COUNT,
  },
);

/** A history, as far as the loop relies on its form. */
export const MESSAGES: JsonSchema = list(object({ role: TEXT }));

const PROGRESS_PARTS = {
  toolCalls: list(RECORD),
  iterations: COUNT,
  usage: object({ inputTokens: COUNT, outputTokens: COUNT, totalTokens: COUNT }),
  retries: object({ byTool: COUNTS, unknown: COUNT }, { total: COUNT }),
};

/** States of version 1 know nothing of what a run is allowed; without a loop guard there is none. */
const OPTIONAL_PARTS = {
  turnOf: TEXT,
  tools: list(TEXT),
  model: TEXT,
  spent: object({
    tokens: COUNT,
    calls: COUNT,
    steps: COUNT,
    timeMs: { type: 'number', minimum: 0 },
    tools: { type: 'object' },
  }),
  granted: list(object({ account: TEXT, part: TEXT, amount: COUNT })),
  guard: object({ seen: list(TEXT), counts: COUNTS }),
  trace: object({ traceparent: TEXT }, { tracestate: TEXT, at: { type: 'number' } }),
};

/** How far a run has come, without its messages. */
export const PROGRESS: JsonSchema = object(PROGRESS_PARTS, OPTIONAL_PARTS);

/** Their states are checked where they are gone on with. */
const INNER = list(object({ run: COUNT }, { state: { type: 'object' }, result: { type: 'object' } }));

const CALLS = list({
  type: 'object',
  anyOf: [
    object({ status: { const: 'settled' }, record: RECORD }, ITEMS),
    object(
      { status: { const: 'waiting' }, ...CALL, waits: list(WAIT), journal: JOURNAL },
      { ...ITEMS, inner: INNER, asks: object({ account: TEXT, part: TEXT }) },
    ),
    object({ status: { const: 'held' }, ...CALL }, ITEMS),
  ],
});

/** The form of a run's state, as far as the loop relies on it: states come from outside. */
export const RUN_STATE_SCHEMA: JsonSchema = {
  ...object(
    {
      version: { enum: [1, 2, 3, 4, 5] },
      runId: TEXT,
      revision: COUNT,
      messages: MESSAGES,
      open: object({ content: TEXT, calls: CALLS }, { reasoning: TEXT, ...ITEMS }),
      pending: list(object({ id: TEXT })),
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
