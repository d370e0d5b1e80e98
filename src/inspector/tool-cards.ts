import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { ToolRegistry } from '../call/tool-registry.js';
import { toolToSchema } from '../call/tool-to-schema.js';
import type { HookMoment } from '../contract/call.js';
import type { ToolDefinition } from '../contract/tool.js';
import { boundMethodOf } from '../discovery/discover-tools.js';
import { planToolset, schemaOrigins } from '../discovery/plan-toolset.js';
import { errorMessage } from '../kernel/error-message.js';
import { listedTool } from '../mcp/server/listed-tool.js';
import { type StrictSchema, strictSchema } from '../schema/strict/strict-schema.js';
import type { ToolSurrounding } from './options.js';
import { shownValue } from './shown-runs.js';

/** A token of English and JSON is about four characters for all models of today. */
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
    const method = bound && `${bound.class.name}.${String(bound.key)}`;
    const tokens = sizes[index] ?? 0;
    const share = total === 0 ? 0 : tokens / total;
    return { name, title: annotations?.title, description, method, tokens, share, marks: marksOf(tool) };
  });
}

/** What is said of a tool that changes how it is called. */
function marksOf(tool: ToolDefinition): readonly string[] {
  const { annotations = {}, approval, execution, background, sequential, returnDirect } = tool;
  return [
    ...(annotations.readOnly ? ['reads only'] : []),
    ...(annotations.destructive ? ['destructive'] : []),
    ...(annotations.idempotent ? ['idempotent'] : []),
    ...(annotations.openWorld ? ['open world'] : []),
    ...(approval ? [typeof approval === 'function' ? 'may need approval' : 'needs approval'] : []),
    ...(execution === 'client' ? ['executed by the client'] : []),
    ...(background ? ['background'] : []),
    ...(sequential ? ['sequential'] : []),
    ...(returnDirect ? ['returns directly'] : []),
  ];
}

interface CardSource {
  readonly registry: ToolRegistry;
  readonly surroundings: ((tool: ToolDefinition) => readonly ToolSurrounding[]) | undefined;
}

/** The card of a tool; nothing where there is none. */
export async function toolCard(name: string, { registry, surroundings }: CardSource) {
  const tool = registry.offered(name);
  const summary = toolSummaries(registry).find((listed) => listed.name === name);
  if (tool === undefined || summary === undefined) return undefined;
  const { parameters, output, annotations, timeoutMs, retries, maxResultChars, coerce, repair } = tool;
  const bound = boundMethodOf(tool);
  const planned = bound && planToolset(bound.class).tools.find(({ key }) => key === bound.key);
  const origins = planned === undefined ? ['explicit'] : schemaOrigins(planned);
  // The function that a person would look for.
  const body = bound === undefined ? tool.execute : Reflect.get(bound.class.prototype, bound.key);
  return {
    ...summary,
    origins: origins.length === 0 ? ['no parameters'] : origins,
    place: await placeOf(body),
    parameters,
    output,
    annotations: shownValue(annotations),
    limits: shownValue({ timeoutMs, retries, maxResultChars, coerce, repair }),
    surroundings: [...standingAround(registry), ...(surroundings?.(tool) ?? [])],
    strict: strictReport(strictSchema(parameters)),
    surfaces: await surfacesOf(tool, registry),
  };
}

const MOMENTS: readonly HookMoment[] = ['beforeCall', 'beforeRun', 'afterCall', 'onError'];

function standingAround({ policies, hooks }: ToolRegistry): readonly ToolSurrounding[] {
  return [
    ...policies.map((policy) => ({ kind: 'policy', name: policy.name || 'policy' }) as const),
    ...hooks.flatMap((hook, index) => {
      const moments = MOMENTS.filter((moment) => hook[moment] !== undefined);
      if (moments.length === 0) return [];
      const name = `${hook.name ?? `hook ${index + 1}`} (${moments.join(', ')})`;
      return [{ kind: 'hook', name } as const];
    }),
  ];
}

function strictReport(strict: StrictSchema): unknown {
  if (!strict.isStrict) return { isStrict: false, reasons: strict.reasons };
  const { rewritten, checked } = strict.report;
  return { isStrict: true, rewritten, checked, schema: strict.schema };
}

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
    MCP: () => listedTool(tool),
    'AI SDK': () => aiSdkTool(name, registry),
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

async function aiSdkTool(name: string, registry: ToolRegistry): Promise<unknown> {
  const { toAiSdkTools } = await import('../ai-sdk/to-ai-sdk-tools.js');
  const { [name]: tool } = toAiSdkTools(registry.view({ allow: [name] }));
  if (tool === undefined) throw new Error('it is not offered there');
  const { inputSchema, ...others } = tool;
  return { ...others, inputSchema: inputSchema.jsonSchema };
}

/** Where a function is written; `line` counts from 1. */
interface FunctionPlace {
  readonly file: string;
  readonly line: number;
}

const known = new WeakMap<object, FunctionPlace>();

/** The file and line of a function, as the engine knows them, in its source where there is a map; or nothing. */
async function placeOf(body: unknown): Promise<FunctionPlace | undefined> {
  if (typeof body !== 'function') return undefined;
  const found = known.get(body) ?? (await askEngine(body));
  if (found !== undefined) known.set(body, found);
  return found;
}

const SLOT = Symbol.for('toolwright.inspector.function');

interface EngineLocation {
  readonly scriptId: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The engine says this to a debugger alone; it is one for a moment. */
async function askEngine(body: object): Promise<FunctionPlace | undefined> {
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    const urls = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
    const post = (method: string, params?: object): unknown => {
      let answer: unknown;
      // Answered at once: the session is of this very thread.
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
      return location && sourcePlace(urls.get(location.scriptId) ?? '', location);
    } finally {
      Reflect.deleteProperty(globalThis, SLOT);
      session.disconnect();
    }
  } catch {
    // A runtime without such a session, or one that is being debugged otherwise.
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
