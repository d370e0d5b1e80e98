import type { Message, ToolSchema } from '../../core/contract/llm-provider.js';
import { cached } from '../../core/kernel/cached.js';
import type { ToolRegistry } from '../call/tool-registry.js';
import type { ProviderTarget } from './options.js';
import { wrongConfig } from './run-errors.js';

/** The tools through which a model finds and calls deferred tools. */
export const SEARCH_TOOLS = 'search_tools';
export const CALL_TOOL = 'call_tool';

/** The parts of a run that determine its offered tools. */
interface OfferingRun {
  readonly config: { readonly deferAbove?: number };
  readonly messages: readonly Message[];
  /** The store of its large results, which can be read later. */
  readonly results: unknown;
  /** If it continues: names of the tools that were sent before, in order. */
  readonly record: { readonly tools?: readonly string[] } | undefined;
}

/** The definitions of a registry: those in every request, and those that are found by a search. */
interface Division {
  readonly direct: readonly ToolSchema[];
  readonly deferred: ReadonlyMap<string, ToolSchema>;
}

const divisions = new WeakMap<readonly ToolSchema[], Map<number, Division>>();
/** Lists of definitions without deferred tools, as most lists are. */
const plainLists = new WeakSet<readonly ToolSchema[]>();

/** The approximate characters of JSON per token, in all tokenizers. */
const CHARS_PER_TOKEN = 4;

/**
 * Defers tools that request it. If the definitions have more tokens than `above`, defers all tools that do not
 * refuse.
 */
export function divide(tools: ToolRegistry, above = Number.POSITIVE_INFINITY): Division {
  const definitions = tools.toProviderDefs();
  const byLimit = cached(divisions, definitions, () => new Map<number, Division>());
  return cached(byLimit, above, () => dividedAbove(above, definitions, tools));
}

function dividedAbove(above: number, definitions: readonly ToolSchema[], tools: ToolRegistry): Division {
  const tokens = (): number =>
    definitions.reduce((sum, schema) => sum + JSON.stringify(schema).length, 0) / CHARS_PER_TOKEN;
  const isTooMuch = Number.isFinite(above) && tokens() > above;
  const direct: ToolSchema[] = [];
  const deferred = new Map<string, ToolSchema>();
  for (const definition of definitions) {
    const { name } = definition.function;
    const { defer = isTooMuch, namespace } = tools.offered(name) ?? {};
    if (!defer) direct.push(definition);
    else deferred.set(name, namespace === undefined ? definition : { ...definition, namespace });
  }
  const isPlain = deferred.size === 0;
  const taken = [SEARCH_TOOLS, CALL_TOOL].find((name) => tools.offered(name) !== undefined);
  if (taken !== undefined && !isPlain) {
    const problem = `a tool is called '${taken}', and tools are deferred: the model could not tell them apart`;
    const fix = 'another `name` for that tool';
    throw wrongConfig({ option: 'tools', problem, fix });
  }
  if (!isPlain) return { direct, deferred };
  plainLists.add(definitions);
  return { direct: definitions, deferred };
}

interface LastOffer {
  readonly division: Division;
  readonly takesFound: boolean;
  readonly found: number;
  readonly reads: boolean;
  readonly definitions: readonly ToolSchema[];
}

/**
 * The definitions in the requests of one run. A definition keeps its position once it was sent, even if tools are
 * withheld, return or are added: providers can cache the beginning of a prompt only while it does not change.
 */
export class OfferedTools {
  /** The last request offered one of our tools. */
  hasOurs = false;
  readonly #run: OfferingRun;
  /** The definitions of all requests so far, as long as all tools are offered and nothing has changed. */
  #unchanged: readonly ToolSchema[] | undefined;
  /** By name, in the order in which definitions were sent. */
  #places: Map<string, number> | undefined;
  #found: Set<string> | undefined;
  #looked = 0;
  #hasKept = false;
  #helpers: readonly [ToolSchema, ToolSchema] | undefined;
  #last: LastOffer | undefined;

  constructor(run: OfferingRun) {
    this.#run = run;
  }

  get #before(): readonly string[] {
    return this.#run.record?.tools ?? [];
  }

  /** Names in the order in which their definitions were sent. */
  get order(): readonly string[] {
    if (this.#places !== undefined) return [...this.#places.keys()];
    return this.#unchanged?.map((definition) => definition.function.name) ?? this.#before;
  }

  /** The definitions of the next request; the same array as long as nothing changes. */
  definitions(tools: ToolRegistry, { provider, model = '' }: ProviderTarget): readonly ToolSchema[] {
    const { results, config } = this.#run;
    if (this.#places === undefined && results === undefined && config.deferAbove === undefined) {
      const before = this.#before;
      const all = tools.toProviderDefs();
      const isSent =
        before.length === 0 ||
        (before.length === all.length &&
          all.every((definition, place) => definition.function.name === before[place]));
      this.#unchanged ??= isSent && plainLists.has(all) ? all : undefined;
      if (this.#unchanged === all) return all;
    }
    this.#places ??= new Map(this.order.map((name, place) => [name, place]));
    // The model accepts definitions of found tools after its prompt.
    return this.#changing(this.#places, tools, provider.takesFoundTools?.(model) ?? false);
  }

  #changing(places: Map<string, number>, tools: ToolRegistry, takesFound: boolean): readonly ToolSchema[] {
    const { config, messages, results } = this.#run;
    const division = divide(tools, config.deferAbove);
    const keepsResults = results !== undefined;
    if (keepsResults || (takesFound && division.deferred.size > 0))
      // The new messages of the history: for found tools, and stored results.
      for (; this.#looked < messages.length; this.#looked += 1) {
        const message = messages[this.#looked];
        if (message?.role !== 'tool') continue;
        if (message.found !== undefined) this.#found ??= new Set();
        for (const name of message.found ?? []) this.#found?.add(name);
        if (message.kept !== undefined) this.#hasKept = true;
      }
    const found = takesFound ? (this.#found?.size ?? 0) : 0;
    const reads = keepsResults && this.#hasKept;
    const last = this.#last;
    const isSame = last?.division === division && last.takesFound === takesFound;
    if (isSame && last.found === found && last.reads === reads) return last.definitions;
    // In the order in which they were first sent.
    const placed = division.direct.map((definition) => {
      const { name } = definition.function;
      const place = places.get(name) ?? places.size;
      places.set(name, place);
      return { definition, place };
    });
    const direct = placed.sort((one, other) => one.place - other.place).map(({ definition }) => definition);
    const others = [
      ...(division.deferred.size === 0 ? [] : this.#deferred(division, takesFound)),
      ...(reads ? [READ_SCHEMA] : []),
    ];
    const definitions = [...direct, ...others];
    this.hasOurs = others.length > 0;
    this.#last = { division, takesFound, found, reads, definitions };
    return definitions;
  }

  #deferred({ deferred }: Division, takesFound: boolean): readonly ToolSchema[] {
    // Unchanged after the first request; later tools are found all the same.
    this.#helpers ??= helpersFor(deferred);
    const [search, call] = this.#helpers;
    if (!takesFound) return [search, call];
    const found = [...(this.#found ?? [])].flatMap((name) => deferred.get(name) ?? []);
    return [
      { ...search, isSearch: true },
      ...found.map((definition) => ({ ...definition, defer: true as const })),
    ];
  }
}

const MAX_NAMESPACES = 40;

/** The tools to find and call deferred tools. */
function helpersFor(deferred: ReadonlyMap<string, ToolSchema>): readonly [ToolSchema, ToolSchema] {
  const namespaces = new Set(Array.from(deferred.values(), ({ namespace }) => namespace));
  namespaces.delete(undefined);
  const named = [...namespaces].sort().slice(0, MAX_NAMESPACES);
  const groups = named.length === 0 ? '' : ` There are tools for: ${named.join(', ')}.`;
  const helper = (name: string, description: string, parameters: ToolSchema['function']['parameters']) => ({
    type: 'function' as const,
    function: { name, description, parameters, strict: false },
  });
  return [
    helper(SEARCH_TOOLS, `${SEARCH_DESCRIPTION}${groups}`, SEARCH_PARAMETERS),
    helper(CALL_TOOL, CALL_DESCRIPTION, CALL_PARAMETERS),
  ];
}

const SEARCH_DESCRIPTION =
  'Finds tools that are not among yours yet, by what you want to do. There are more tools than you are shown: search before you say that something cannot be done, once for each thing.';

export const SEARCH_PARAMETERS = {
  type: 'object',
  properties: {
    query: {
      type: 'string',
      minLength: 1,
      description: 'What is to be done, in a few words: create an invoice',
    },
    limit: { type: 'integer', minimum: 1, maximum: 20, description: 'How many tools to give; default: 5' },
  },
  required: ['query'],
} as const;

const CALL_DESCRIPTION = `Calls a tool that ${SEARCH_TOOLS} has found, by its name and with the arguments that its parameters ask for.`;

const CALL_PARAMETERS = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'The name of the tool' },
    arguments: { type: 'object', description: 'What the tool takes', additionalProperties: true },
  },
  required: ['name', 'arguments'],
} as const;

export const READ_RESULT = 'read_result';

/** The definition of the tool that reads stored results. It is offered once there is a stored result. */
export const READ_SCHEMA: ToolSchema = {
  type: 'function',
  function: {
    name: READ_RESULT,
    description:
      'Reads on in a result that was too large to be shown whole: by characters ("from"), by lines ("line"), by a place in JSON ("path"), or what is around a text ("search").',
    parameters: {
      type: 'object',
      properties: {
        handle: { type: 'string', description: 'What the cut result says' },
        from: {
          type: 'integer',
          minimum: 0,
          description: 'First character; with a path to a list, first item',
        },
        line: { type: 'integer', minimum: 1, description: 'First line' },
        count: { type: 'integer', minimum: 1, description: 'Characters, lines, items or matches at most' },
        path: { type: 'string', description: 'A place in JSON: orders[0].lines' },
        search: { type: 'string', description: 'A text that is looked for' },
      },
      required: ['handle'],
    },
    strict: false,
  },
};

/** The earlier offered tools that are still given, what replaced them, and tools that are registered from now on. */
export function onlyKnown(given: ToolRegistry, names: readonly string[] | undefined): ToolRegistry {
  if (names === undefined) return given;
  const isGone = (name: string) => given.offered(name) === undefined;
  const replacing = names.filter(isGone).flatMap((name) => given.get(name)?.replacedBy?.() ?? []);
  const known = new Set([...names, ...replacing]);
  const others = given.list().filter((name) => !known.has(name));
  return others.length === 0 ? given : given.view({ deny: others });
}
