import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { HookMoment } from '../../core/contract/call.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { errorMessage } from '../../core/kernel/error-message.js';
import { isRecord } from '../../core/kernel/json.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import { toolToSchema } from '../../run/call/tool-to-schema.js';
import { schemaWarnings } from '../../tools/checking/schema-faults.js';
import { boundMethodOf, methodPlace } from '../../tools/discovery/bound-method.js';
import { planToolset, schemaOrigins } from '../../tools/discovery/plan-toolset.js';
import { strictSchema } from '../../tools/schema/strict/strict-schema.js';
import { listedTool } from '../mcp/server/call-result.js';
import type { InspectorOptions, ToolSurrounding } from './options.js';
import { shownValue } from './shown-runs.js';

/** Estimate: a token of English and JSON has about four characters. */
const CHARACTERS_PER_TOKEN = 4;

export function toolSummaries(registry: ToolRegistry) {
  const tools = registry.tools();
  const sizes = tools.map((tool) =>
    Math.ceil(JSON.stringify(toolToSchema(tool)).length / CHARACTERS_PER_TOKEN),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  return tools.map((tool, index) => {
    const { name, description = '', annotations } = tool;
    const bound = boundMethodOf(tool);
    const method = bound && methodPlace(bound);
    const tokens = sizes[index] ?? 0;
    const share = total === 0 ? 0 : tokens / total;
    const about = { title: annotations?.title, description, method, marks: marksOf(tool) };
    return { name, ...about, tokens, share, warnings: toolWarnings(tool).map(shownValue) };
  });
}

/** Declarations of a tool that change how it is called. */
function marksOf(tool: ToolDefinition): readonly string[] {
  const { annotations = {}, approval, execution, background, sequential, returnDirect } = tool;
  const marks = [
    [annotations.readOnly, 'reads only'],
    [annotations.destructive, 'destructive'],
    [annotations.idempotent, 'idempotent'],
    [annotations.openWorld, 'open world'],
    [approval, typeof approval === 'function' ? 'may need approval' : 'needs approval'],
    [execution === 'client', 'executed by the client'],
    [background, 'background'],
    [sequential, 'sequential'],
    [returnDirect, 'returns directly'],
  ] as const;
  return marks.flatMap(([isSet, mark]) => (isSet ? [mark] : []));
}

/** The details of a tool; `undefined` if there is no such tool. */
export async function toolCard(
  name: string,
  { registry, options }: { readonly registry: ToolRegistry; readonly options: InspectorOptions },
) {
  const tool = registry.offered(name);
  const summary = toolSummaries(registry).find((listed) => listed.name === name);
  if (tool === undefined || summary === undefined) return undefined;
  const { parameters, output, annotations, timeoutMs, retries, maxResultChars, coerce, repair } = tool;
  const bound = boundMethodOf(tool);
  const planned = bound && planToolset(bound.class).tools.find(({ key }) => key === bound.key);
  const origins = planned === undefined ? ['explicit'] : schemaOrigins(planned);
  const strict = strictSchema(parameters);
  const hooks = registry.hooks.flatMap((hook, index) => {
    const moments = MOMENTS.filter((moment) => hook[moment] !== undefined);
    const title = `${hook.name ?? `hook ${index + 1}`} (${moments.join(', ')})`;
    return moments.length === 0 ? [] : [{ kind: 'hook', name: title } as const];
  });
  const surroundings: readonly ToolSurrounding[] = [
    ...registry.policies.map((policy) => ({ kind: 'policy', name: policy.name || 'policy' }) as const),
    ...hooks,
    ...(options.surroundings?.(tool) ?? []),
  ];
  // The function in the source of the application.
  const body = bound === undefined ? tool.execute : Reflect.get(bound.class.prototype, bound.key);
  return {
    ...summary,
    origins: origins.length === 0 ? ['no parameters'] : origins,
    place: typeof body === 'function' ? await placeOf(body) : undefined,
    parameters,
    output,
    annotations: shownValue(annotations),
    limits: shownValue({ timeoutMs, retries, maxResultChars, coerce, repair }),
    surroundings,
    app: tool.ui && { uri: tool.ui.uri, csp: tool.ui.csp, domain: tool.ui.domain },
    strict: strict.isStrict
      ? { isStrict: true, ...strict.report, schema: strict.schema }
      : { isStrict: false, reasons: strict.reasons },
    surfaces: await surfacesOf(tool, registry),
  };
}

const MOMENTS: readonly HookMoment[] = ['beforeCall', 'beforeRun', 'afterCall', 'onError'];

async function surfacesOf(tool: ToolDefinition, registry: ToolRegistry) {
  const { name, description, parameters } = toolToSchema(tool).function;
  const strict = strictSchema(parameters);
  const about = { type: 'function', name, description };
  const sent = {
    'OpenAI, Chat Completions': () => toolToSchema(tool),
    'OpenAI, Responses': () => ({ ...about, parameters, strict: false }),
    ...(strict.isStrict && {
      'OpenAI, strict': () => ({ ...about, parameters: strict.schema, strict: true }),
    }),
    MCP: () => listedTool(tool, false),
    'AI SDK': async () => {
      const { toAiSdkTools } = await import('../../models/ai-sdk/to-ai-sdk-tools.js');
      const { [name]: own } = toAiSdkTools(registry.view({ allow: [name] }));
      if (own === undefined) throw new Error('it cannot be offered to the AI SDK');
      const { inputSchema, ...others } = own;
      return { ...others, inputSchema: inputSchema.jsonSchema };
    },
  };
  const surfaces = Object.entries(sent).map(async ([surface, write]) => {
    try {
      return { name: surface, sent: shownValue(await write()) };
    } catch (error) {
      return { name: surface, problem: errorMessage(error) };
    }
  });
  return Promise.all(surfaces);
}

/** The place of a function in the source; `line` counts from 1. */
interface FunctionPlace {
  readonly file: string;
  readonly line: number;
}

const known = new WeakMap<object, FunctionPlace>();

const SLOT = Symbol.for('toolwright.inspector.function');

interface EngineLocation {
  readonly scriptId: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/**
 * The file and line of a function, through its source map if there is one. Only a debugger can read this from the
 * engine, so this is a debugger session for a moment.
 */
async function placeOf(body: object): Promise<FunctionPlace | undefined> {
  const before = known.get(body);
  if (before !== undefined) return before;
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    const urls = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
    const post = (method: string, params?: object): unknown => {
      let answer: unknown;
      // The session is of this thread, so the answer is synchronous.
      session.post(method, params, (_error, result) => {
        answer = result;
      });
      return answer;
    };
    try {
      Reflect.set(globalThis, SLOT, body);
      post('Debugger.enable');
      const expression = `globalThis[Symbol.for(${JSON.stringify(SLOT.description)})]`;
      const evaluated = post('Runtime.evaluate', { expression }) as { result: { objectId?: string } };
      const { objectId } = evaluated.result;
      if (objectId === undefined) return undefined;
      const { internalProperties = [] } = post('Runtime.getProperties', { objectId }) as {
        internalProperties?: readonly { name: string; value?: { value?: EngineLocation } }[];
      };
      const location = internalProperties.find(({ name }) => name === '[[FunctionLocation]]')?.value?.value;
      const found = location && sourcePlace(urls.get(location.scriptId) ?? '', location);
      if (found !== undefined) known.set(body, found);
      return found;
    } finally {
      Reflect.deleteProperty(globalThis, SLOT);
      session.disconnect();
    }
  } catch {
    // The runtime has no such session, or is being debugged.
    return undefined;
  }
}

function sourcePlace(url: string, { lineNumber, columnNumber }: EngineLocation): FunctionPlace | undefined {
  if (!url.startsWith('file:')) return undefined;
  const file = fileURLToPath(url);
  const map = `${file}.map`;
  const built = { file: relative(process.cwd(), file), line: lineNumber + 1 };
  if (!existsSync(map)) return built;
  const entry = new SourceMap(JSON.parse(readFileSync(map, 'utf8'))).findEntry(lineNumber, columnNumber);
  if (!('originalSource' in entry) || !entry.originalSource) return built;
  const source = fileURLToPath(new URL(entry.originalSource, pathToFileURL(resolve(map))));
  return { file: relative(process.cwd(), source), line: entry.originalLine + 1 };
}

/** OpenAI refuses requests beyond these limits. */
const OPENAI = { description: 1_024, tools: 128, strictDepth: 10 };

/** Probable mistakes in a tool, and limits of providers that it exceeds. */
function toolWarnings({ description = '', parameters }: ToolDefinition): readonly string[] {
  const parts = [...partsOf(parameters, '', 0)];
  const undescribed = Object.entries(parameters.properties ?? {}).filter(
    ([, { description: own, $ref }]) => !own && $ref === undefined,
  );
  const open = parts.filter(({ schema, path }) => path !== '' && isOpen(schema));
  const depth = Math.max(...parts.map((part) => part.depth));
  const warnings = [
    description.trim() === '' && 'It has no description, so models cannot know when to call it.',
    description.length > OPENAI.description &&
      `The description has ${description.length} characters; OpenAI accepts ${OPENAI.description}.`,
    undescribed.length > 0 && `Without a description: ${listed(undescribed.map(([key]) => key))}.`,
    open.length > 0 &&
      `Any value or any keys are allowed, so models have to guess: ${listed(open.map(({ path }) => path))}.`,
    depth > OPENAI.strictDepth &&
      `The schema is nested ${depth} levels deep; OpenAI accepts ${OPENAI.strictDepth} in strict mode.`,
    ...schemaWarnings(parameters, 'author').map(({ path, problem }) => `parameters.${path} ${problem}.`),
  ];
  return warnings.filter((warning) => warning !== false);
}

/** Limits of providers that all tools together exceed. */
export function listWarnings(tools: readonly unknown[]): readonly string[] {
  if (tools.length <= OPENAI.tools) return [];
  return [`There are ${tools.length} tools; OpenAI accepts ${OPENAI.tools} in a request.`];
}

interface SchemaPart {
  readonly path: string;
  readonly depth: number;
  readonly schema: JsonSchema;
}

/** A schema and its parts. `$ref` is not followed: definitions are listed under their names. */
function* partsOf(schema: unknown, path: string, depth: number): Generator<SchemaPart> {
  if (!isRecord(schema)) return;
  yield { path, depth, schema };
  const { properties, items, additionalProperties, $defs, definitions } = schema;
  for (const [key, part] of Object.entries(Object(properties)))
    yield* partsOf(part, path === '' ? key : `${path}.${key}`, depth + 1);
  for (const [name, part] of Object.entries({ ...Object($defs), ...Object(definitions) }))
    yield* partsOf(part, `#${name}`, depth);
  yield* partsOf(additionalProperties, `${path}.*`, depth + 1);
  for (const part of [items, schema.prefixItems].flat()) yield* partsOf(part, `${path}[]`, depth + 1);
  for (const part of [schema.anyOf, schema.oneOf, schema.allOf].flat()) yield* partsOf(part, path, depth);
}

const SAYS_NOTHING = new Set(['title', 'description', 'default', 'examples']);

function isOpen(schema: JsonSchema): boolean {
  if (Object.keys(schema).every((keyword) => SAYS_NOTHING.has(keyword))) return true;
  if (schema.type !== 'object') return false;
  const hasKeys = Object.keys(Object(schema.properties)).length > 0;
  return schema.additionalProperties === true || (!hasKeys && !isRecord(schema.additionalProperties));
}

const MOST_PATHS = 6;

function listed(all: readonly string[]): string {
  const paths = [...new Set(all)];
  const more = paths.length - MOST_PATHS;
  return paths.slice(0, MOST_PATHS).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
