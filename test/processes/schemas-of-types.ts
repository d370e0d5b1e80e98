import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonSchema } from 'toolwright';
import { ROOT, readText } from '../structure/repository.js';

const CACHE = join(ROOT, 'node_modules', '.cache', 'toolwright-type-schemas');

/** Exported types of one module of this repository. */
export interface ExportedTypes {
  /** Relative to the root. The module may import only packages, because the cache does not check other files. */
  readonly path: string;
  readonly tsconfig: string;
  readonly names: readonly string[];
  /** Whether objects may have properties that their types do not name. */
  readonly additionalProperties: boolean;
}

/**
 * Schemas of types by their names, made by ts-json-schema-generator. Loading it takes seconds, so the schemas are
 * cached until the module or a package changes.
 */
export async function schemasOfTypes(types: ExportedTypes): Promise<Readonly<Record<string, JsonSchema>>> {
  const inputs = [types, ...[types.path, types.tsconfig, 'package-lock.json'].map(readText)];
  const key = createHash('sha256').update(JSON.stringify(inputs)).digest('hex');
  const file = join(CACHE, `${key}.json`);
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    const schemas = await generate(types);
    mkdirSync(dirname(file), { recursive: true });
    // Renaming is atomic, so other processes never read an incomplete file.
    const temporary = `${file}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify(schemas));
    renameSync(temporary, file);
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
