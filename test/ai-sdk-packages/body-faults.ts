import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { createGenerator } from 'ts-json-schema-generator';
import { ROOT } from '../structure/repository.js';

const FOLDER = join(ROOT, 'test/ai-sdk-packages');
/** In node_modules, so that each installation deletes it and the schemas match the installed types. */
const CACHE = join(FOLDER, 'node_modules/.cache/wire-schemas.json');
const TYPES = ['MessagesBody', 'MessagesReply', 'MessagesEvent', 'GenerateBody', 'GenerateReply'] as const;
type WireType = (typeof TYPES)[number];

const validators = new Map<WireType, ValidateFunction>();

/** Returns the violations of the types of the provider's own client. Unknown properties are violations, too. */
export function faultsOf(type: WireType, body: unknown): readonly unknown[] {
  const validate = validators.get(type) ?? compile(type);
  validators.set(type, validate);
  return validate(body) ? [] : [{ type, faults: validate.errors?.slice(0, 5), body }];
}

function compile(type: WireType): ValidateFunction {
  return new Ajv({ strict: false, code: { optimize: false } }).compile(schemas()[type]);
}

function schemas(): Readonly<Record<WireType, object>> {
  if (!existsSync(CACHE)) writeSchemas();
  return JSON.parse(readFileSync(CACHE, 'utf8'));
}

function writeSchemas(): void {
  const generator = createGenerator({
    path: join(FOLDER, 'wire-types.ts'),
    tsconfig: join(FOLDER, 'wire-types.json'),
    skipTypeCheck: true,
    additionalProperties: false,
    topRef: false,
  });
  const all = Object.fromEntries(TYPES.map((type) => [type, generator.createSchema(type)]));
  mkdirSync(dirname(CACHE), { recursive: true });
  const temporary = `${CACHE}.${process.pid}`;
  writeFileSync(temporary, JSON.stringify(all));
  // Atomic, because another worker may read the file at the same time.
  renameSync(temporary, CACHE);
}
