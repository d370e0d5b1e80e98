import type { JsonSchema } from '../../core/contract/json-schema.js';
import {
  type InvalidOption,
  invalidArguments,
  invalidOptions,
  refuseOptions,
} from '../../core/errors/author-fault.js';
import { isRecord, parsedJson } from '../../core/kernel/json.js';
import { nodeFiles } from '../../core/kernel/node-module.js';
import {
  BOOLEAN,
  FILLED_TEXT,
  listOf,
  type OptionRule,
  oneOf,
  optionTable,
  withMethods,
} from '../../core/kernel/options.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import type { ChangeKind, SchemaChange } from './schema-changes.js';
import { schemaChanges } from './schema-changes.js';

/** A tool as models receive it. */
export interface SurfaceTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  /** Estimated tokens of its definition: one per four characters of JSON. */
  readonly tokens: number;
}

/** Everything that models receive from a registry, by name; plain JSON. */
export interface ToolSurface {
  readonly tools: readonly SurfaceTool[];
  readonly tokens: number;
}

/** A change of what models receive. */
export interface SurfaceChange extends SchemaChange {
  readonly tool: string;
}

/** Options of {@link expectToolSurface}: a file, or a surface. */
export interface ToolSurfaceOptions {
  /** File that stores the surface. It is created if it is missing, except in CI. */
  readonly file?: string;
  /** The expected surface, instead of a file. */
  readonly surface?: ToolSurface;
  /** Overwrites the file; default: whether `UPDATE_TOOL_SURFACE` is set. */
  readonly update?: boolean;
  /** Kinds of changes that are allowed; default: none. */
  readonly allow?: readonly ChangeKind[];
}

const KINDS = ['breaking', 'non-breaking', 'wording'] as const;
const SURFACE: OptionRule = { accepts: isSurface, fix: 'what toolSurface(registry) gave' };
const OPTIONS = optionTable<ToolSurfaceOptions>('expectToolSurface', {
  file: FILLED_TEXT,
  surface: SURFACE,
  update: BOOLEAN,
  allow: listOf(oneOf(...KINDS), "['non-breaking', 'wording']"),
});
const ONE_OF_BOTH: InvalidOption = {
  where: 'expectToolSurface',
  option: 'file',
  problem: 'it takes a file or a surface to compare with, and not both',
  fix: "{ file: 'test/tools.json' }",
};
const REGISTRY = withMethods(['toProviderDefs'], 'the ToolRegistry');

const CHARACTERS_PER_TOKEN = 4;

/**
 * What models receive from a registry: names, descriptions, schemas, and their size.
 *
 * @example
 * ```ts
 * const { tokens } = toolSurface(registry);
 * expect(tokens).toBeLessThan(2_000);
 * ```
 */
export function toolSurface(registry: ToolRegistry): ToolSurface {
  refuseOptions(invalidArguments({ of: 'toolSurface', given: { registry }, rules: { registry: REGISTRY } }));
  const tools = registry
    .toProviderDefs()
    .map((definition) => {
      const { name, description, parameters } = definition.function;
      return { name, description, parameters, tokens: tokensOf(JSON.stringify(definition)) };
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1));
  return { tools, tokens: tools.reduce((sum, { tokens }) => sum + tokens, 0) };
}

function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARACTERS_PER_TOKEN);
}

/**
 * The changes between two surfaces, with their effect on callers: valid calls become invalid (`breaking`), all stay
 * valid (`non-breaking`), or only texts differ (`wording`).
 *
 * @example
 * ```ts
 * const before = toolSurface(registry);
 * registry.register(search);
 * expect(surfaceChanges(before, toolSurface(registry))).toEqual([
 *   { kind: 'non-breaking', tool: 'search', path: '', what: 'tool added' },
 * ]);
 * ```
 */
export function surfaceChanges(before: ToolSurface, after: ToolSurface): readonly SurfaceChange[] {
  refuseOptions(
    invalidArguments({
      of: 'surfaceChanges',
      given: { before, after },
      rules: { before: SURFACE, after: SURFACE },
    }),
  );
  const [old, now] = [before, after].map(({ tools }) => new Map(tools.map((tool) => [tool.name, tool])));
  return [...new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])]
    .sort()
    .flatMap((tool) => toolChanges(old?.get(tool), now?.get(tool)).map((change) => ({ ...change, tool })));
}

function toolChanges(old: SurfaceTool | undefined, now: SurfaceTool | undefined): readonly SchemaChange[] {
  if (now === undefined) return [{ kind: 'breaking', path: '', what: 'tool removed' }];
  if (old === undefined) return [{ kind: 'non-breaking', path: '', what: 'tool added' }];
  const said = { kind: 'wording', path: '', what: 'description of the tool changed' } as const;
  return [
    ...(old.description === now.description ? [] : [said]),
    ...schemaChanges(old.parameters, now.parameters),
  ];
}

/**
 * Throws if the tools of a registry differ from the stored surface; the error lists all changes by their kind. Works
 * with every test runner.
 *
 * @throws InvalidOptionsError for invalid options; Error with the changes.
 *
 * @example
 * ```ts
 * expectToolSurface(registry, { file: 'test/tools.json', allow: ['non-breaking', 'wording'] });
 * ```
 */
export function expectToolSurface(registry: ToolRegistry, options: ToolSurfaceOptions): void {
  refuseOptions(invalidOptions(options, OPTIONS));
  const { file, surface, allow = [], update = isSet(process.env.UPDATE_TOOL_SURFACE) } = options;
  if ((file === undefined) === (surface === undefined)) refuseOptions([ONE_OF_BOTH]);
  const now = toolSurface(registry);
  const expected = surface ?? readSurface(file ?? '', update);
  if (expected === undefined) {
    writeSurface(file ?? '', now);
    return;
  }
  const changes = surfaceChanges(expected, now);
  if (changes.some(({ kind }) => !allow.includes(kind)))
    throw new Error(describe(changes, { expected, now, file }));
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && !['', '0', 'false'].includes(value);
}

/** `undefined` if the file must be written. */
function readSurface(file: string, update: boolean): ToolSurface | undefined {
  const { existsSync, readFileSync } = nodeFiles();
  if (update) return undefined;
  if (!existsSync(file)) {
    if (!isSet(process.env.CI)) return undefined;
    throw new Error(`there is no ${file}, and in CI none is written: run the test elsewhere and commit it`);
  }
  const stored = parsedJson(readFileSync(file, 'utf8'));
  if (!isSurface(stored)) throw new Error(`${file} holds no tool surface; ${HOW_TO_UPDATE}`);
  return stored;
}

const HOW_TO_UPDATE = 'UPDATE_TOOL_SURFACE=1 writes it anew';

function writeSurface(file: string, surface: ToolSurface): void {
  const { mkdirSync, writeFileSync } = nodeFiles();
  mkdirSync(file.replace(/[^/\\]*$/, '') || '.', { recursive: true });
  writeFileSync(file, `${JSON.stringify(surface, null, 2)}\n`);
}

function isSurface(value: unknown): value is ToolSurface {
  return isRecord(value) && Array.isArray(value.tools) && value.tools.every(isSurfaceTool);
}

function isSurfaceTool(value: unknown): value is SurfaceTool {
  return isRecord(value) && typeof value.name === 'string' && isRecord(value.parameters);
}

interface Compared {
  readonly expected: ToolSurface;
  readonly now: ToolSurface;
  readonly file: string | undefined;
}

function describe(changes: readonly SurfaceChange[], { expected, now, file }: Compared): string {
  const groups = KINDS.flatMap((kind) => {
    const found = changes.filter((change) => change.kind === kind);
    return found.length === 0 ? [] : [`${kind} (${found.length}):`, ...found.map(lineOf)];
  });
  return [
    `What models are offered has changed${file === undefined ? '' : ` since ${file}`}:`,
    ...groups,
    `About ${now.tokens} tokens in all, ${expected.tokens} before.`,
    ...(file === undefined ? [] : [`Where that is meant, ${HOW_TO_UPDATE}.`]),
  ].join('\n');
}

function lineOf({ tool, path, what }: SurfaceChange): string {
  return `  - ${tool}${path === '' ? '' : `, ${path}`}: ${what}`;
}
