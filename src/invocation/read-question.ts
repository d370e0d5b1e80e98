import { createResultChecker } from '../checking/create-result-checker.js';
import { summarizeFaults } from '../checking/describe-faults.js';
import type { JsonSchema } from '../contract/json-schema.js';
import type { StandardSchema } from '../contract/standard-schema.js';
import type { Question } from '../contract/tool-context.js';
import { ToolwrightError } from '../errors/toolwright-error.js';
import { readSchemaSource } from '../schema/schema-source.js';

/** A question as a run can hand it on. */
export interface ReadQuestion {
  readonly message: string;
  readonly schema?: JsonSchema;
  /** The answer as the method takes it; rejects where the author's own schema does not take it. */
  readonly revive: (value: unknown) => Promise<unknown>;
}

/** Reads what a method asks. Throws where its schema is none: that is the tool's own mistake, and fails the call. */
export function readQuestion(question: Question): ReadQuestion {
  const { message, schema: source } = Object(question) as Partial<Question>;
  if (typeof message !== 'string' || message.trim() === '')
    throw new TypeError('context.ask: a question needs a `message`');
  if (source === undefined) return { message, revive: async (value) => value };
  const read = readSchemaSource(source);
  if (!read.ok) throw new TypeError(`context.ask: its \`schema\` ${read.problem}; give ${read.fix}`);
  const { schema, standard } = read;
  return {
    message,
    schema,
    revive: async (value) => (standard ? parse(standard, value) : fitting(schema, value)),
  };
}

async function parse(standard: StandardSchema, value: unknown): Promise<unknown> {
  const result = await standard['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  throw unfitting(result.issues.map((issue) => issue.message));
}

/** The answer was checked when it came, but another version of the method may have asked for something else. */
function fitting(schema: JsonSchema, value: unknown): unknown {
  const faults = createResultChecker(schema)(value);
  if (faults.length === 0) return value;
  throw unfitting([summarizeFaults(faults)]);
}

function unfitting(problems: readonly string[]): ToolwrightError {
  return new ToolwrightError(
    'InvalidAnswer',
    `The answer does not fit what was asked for: ${problems.join('; ')}`,
  );
}
