import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonSchema } from 'toolwright';
import { ROOT, readText } from '../structure/repository.js';

const CACHE = join(ROOT, 'node_modules', '.cache', 'toolwright-type-schemas');

/** Types that a module of this repository exports. */
export interface ExportedTypes {
  /** From the root of the repository; it imports nothing but packages. */
  readonly path: string;
  readonly tsconfig: string;
  readonly names: readonly string[];
  /** Whether objects may have properties that their types do not name. */
  readonly additionalProperties: boolean;
}

/**
 * Schemas of types by their names, as ts-json-schema-generator writes them. To load it, a compiler and the types of
 * packages takes seconds: they are kept for the next run, until the module or a package changes.
 */
export async function schemasOfTypes(types: ExportedTypes): Promise<Readonly<Record<string, JsonSchema>>> {
  const asked = [types, ...[types.path, types.tsconfig, 'package-lock.json'].map(readText)];
  const key = createHash('sha256').update(JSON.stringify(asked)).digest('hex');
  const file = join(CACHE, `${key}.json`);
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    const schemas = await generate(types);
    mkdirSync(dirname(file), { recursive: true });
    // Whoever reads it at the same time sees all of it or nothing.
    const written = `${file}.${process.pid}`;
    writeFileSync(written, JSON.stringify(schemas));
    renameSync(written, file);
    return schemas;
  }
}

async function generate({ path, tsconfig, names, additionalProperties }: ExportedTypes) {
  const { createGenerator } = await import('ts-json-schema-generator');
  const generator = createGenerator({
    ...{ path: join(ROOT, path), tsconfig: join(ROOT, tsconfig), additionalProperties },
    ...{ skipTypeCheck: true, topRef: false },
  });
  return Object.fromEntries(names.map((name) => [name, generator.createSchema(name) as JsonSchema]));
}
