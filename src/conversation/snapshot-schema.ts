import type { JsonSchema } from '../contract/json-schema.js';
import { COUNT, list, MESSAGES, object, PROGRESS, TEXT } from '../loop/run-state-schema.js';

const ORIGIN: JsonSchema = {
  type: 'object',
  anyOf: [
    object({ kind: { const: 'prompt' }, content: { type: ['string', 'array'] } }),
    object({ kind: { const: 'completion' }, tool: TEXT, callId: TEXT, text: TEXT }),
  ],
};

const STATE: JsonSchema = { type: 'object' };
const FLAG: JsonSchema = { type: 'boolean' };

/** The states in it are checked as those of runs are. */
const STANDING: JsonSchema = {
  type: 'object',
  anyOf: [
    {
      type: 'object',
      properties: { status: { const: 'running' }, progress: PROGRESS },
      required: ['status'],
    },
    object({ status: { const: 'answered' }, state: STATE, answers: list({ type: 'object' }), isKept: FLAG }),
    object({ status: { const: 'suspended' }, state: STATE, isKept: FLAG }),
  ],
};

const TURN = object({ number: COUNT, origin: ORIGIN, isAborted: FLAG, standing: STANDING });

const SNAPSHOT = object({
  version: { const: 1 },
  id: TEXT,
  messages: MESSAGES,
  turns: COUNT,
  inbox: list(ORIGIN),
  tasks: list(object({ id: TEXT, callId: TEXT, tool: TEXT, status: { enum: ['waiting', 'running'] } })),
});

/** The form of a conversation's snapshot: snapshots come from outside. */
export const SNAPSHOT_SCHEMA: JsonSchema = {
  ...SNAPSHOT,
  properties: { ...(SNAPSHOT.properties as object), turn: TURN },
};
