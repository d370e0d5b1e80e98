/* The floor: a compiled ajv validator, an awaited asynchronous method, and its value as text, and nothing else. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { jsonSchemas } from '../json-schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A check as a hand-written loop would have it. */
export function createCheck(tool) {
  return addFormats.default(new Ajv2020({ strict: false })).compile(jsonSchemas[tool]);
}

/** The floor for one workload: the result of a tool is text. */
export function floorCall(load) {
  const { check, run } = partsOf(load);
  return {
    name: 'ajv compiled + awaited call + text (the floor)',
    encode: (input) => input,
    call: async (input) => (check(input) ? { forLLM: String(await run(input)) } : { errors: check.errors }),
    read: ({ forLLM }) => forLLM,
  };
}

/** The same without the text. */
export function bareCall(load) {
  const { check, run } = partsOf(load);
  return {
    name: 'ajv compiled + awaited call, no text',
    encode: (input) => input,
    call: async (input) => (check(input) ? run(input) : undefined),
    read: (value) => (value === undefined ? undefined : String(value)),
  };
}

function partsOf({ tool }) {
  const body = bodyOf(tool);
  return { check: createCheck(tool), run: async (input) => body(input) };
}
