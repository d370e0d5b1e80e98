import type { JsonSchema } from '../contract/json-schema.js';

const TEXT: JsonSchema = { type: 'string' };
const COUNT: JsonSchema = { type: 'integer', minimum: 0 };
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

const CALL = { id: TEXT, name: TEXT, arguments: { type: ['object', 'string'] } };

const WAIT = object({ kind: { enum: ['client', 'approval', 'question'] }, index: COUNT });

const JOURNAL = object({
  arguments: { type: 'object' },
  answers: list(object({ index: COUNT, message: TEXT })),
  once: list(object({ key: TEXT })),
});

/** The form of a run's state, as far as the loop relies on it: states come from outside. */
export const RUN_STATE_SCHEMA: JsonSchema = object({
  version: { const: 1 },
  runId: TEXT,
  revision: COUNT,
  messages: list(object({ role: TEXT })),
  open: object({
    content: TEXT,
    calls: list({
      type: 'object',
      anyOf: [
        object({ status: { const: 'settled' }, record: RECORD }),
        object({ status: { const: 'waiting' }, ...CALL, waits: list(WAIT), journal: JOURNAL }),
        object({ status: { const: 'held' }, ...CALL }),
      ],
    }),
  }),
  pending: list(object({ id: TEXT })),
  toolCalls: list(RECORD),
  iterations: COUNT,
  usage: object({ inputTokens: COUNT, outputTokens: COUNT, totalTokens: COUNT }),
  retries: object({ byTool: COUNTS, unknown: COUNT }),
});

function object(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties) };
}

function list(items: JsonSchema): JsonSchema {
  return { type: 'array', items };
}
