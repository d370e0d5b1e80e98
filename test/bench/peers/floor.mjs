/* The floor: a compiled ajv validator and an awaited asynchronous method, and nothing else. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { jsonSchemas } from '../json-schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** A check as a hand-written loop would have it. */
export function createCheck(tool) {
  return addFormats.default(new Ajv2020({ allErrors: true, strict: false })).compile(jsonSchemas[tool]);
}

/** The floor for one workload. */
export function floorCall({ tool }) {
  const check = createCheck(tool);
  const body = bodyOf(tool);
  const run = async (input) => body(input);
  return {
    name: 'ajv compiled + awaited call (the floor)',
    encode: (input) => input,
    call: async (input) => (check(input) ? { value: await run(input) } : { errors: check.errors }),
    read: ({ value }) => (value === undefined ? undefined : String(value)),
  };
}
