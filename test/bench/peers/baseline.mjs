/* The baseline: a compiled ajv validator, an awaited asynchronous method, and its value as text. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { jsonSchemas } from '../json-schemas.mjs';
import { bodyOf } from '../workloads.mjs';

export function compileSchema(tool) {
  return addFormats.default(new Ajv2020({ strict: false })).compile(jsonSchemas[tool]);
}

export function baselineCall(load) {
  const { validate, run } = partsOf(load);
  return {
    name: 'ajv compiled + awaited call + text (baseline)',
    encode: (input) => input,
    call: async (input) =>
      validate(input) ? { forLLM: String(await run(input)) } : { errors: validate.errors },
    read: ({ forLLM }) => forLLM,
  };
}

export function baselineWithoutTextCall(load) {
  const { validate, run } = partsOf(load);
  return {
    name: 'ajv compiled + awaited call, no text',
    encode: (input) => input,
    call: async (input) => (validate(input) ? run(input) : undefined),
    read: (value) => (value === undefined ? undefined : String(value)),
  };
}

function partsOf({ tool }) {
  const body = bodyOf(tool);
  return { validate: compileSchema(tool), run: async (input) => body(input) };
}
