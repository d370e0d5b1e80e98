import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { createGenerator } from 'ts-json-schema-generator';
import { ROOT } from '../structure/repository.js';

const FOLDER = join(ROOT, 'test/ai-sdk-packages');
/** Gone with every installation, so that it is of the installed types. */
const CACHE = join(FOLDER, 'node_modules/.cache/wire-schemas.json');
const TYPES = ['MessagesBody', 'MessagesReply', 'MessagesEvent', 'GenerateBody', 'GenerateReply'] as const;
type WireType = (typeof TYPES)[number];

const judges = new Map<WireType, ValidateFunction>();

/** What is wrong with a body, in the eyes of the provider's own client: whatever its types do not know, too. */
export function faultsOf(type: WireType, body: unknown): readonly unknown[] {
  const judge = judges.get(type) ?? compile(type);
  judges.set(type, judge);
  return judge(body) ? [] : [{ type, faults: judge.errors?.slice(0, 5), body }];
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
  const own = `${CACHE}.${process.pid}`;
  writeFileSync(own, JSON.stringify(all));
  // Another worker may read it meanwhile.
  renameSync(own, CACHE);
}
