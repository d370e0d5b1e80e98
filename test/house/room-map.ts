import { exportedNames, importedNames } from './imported-names.js';
import { type Room, roomOf } from './rooms.js';
import { packageSources } from './source-tree.js';

/** What each room is for, in a line. */
export const PURPOSES: Readonly<Record<string, string>> = {
  kernel:
    'what every room may use and that knows nothing of tools: JSON, names, option rules, errors as text',
  contract:
    'the words that rooms and users share: tools, results, messages, scopes, states; types, and little code',
  errors: 'the table of errors, faults of authors, wrong options',
  metadata: 'what decorators recorded of classes, and how it is found again',
  decorators: '`@Tool`, `@Param` and the others: they record, and do nothing else',
  validators: 'the rules that class-validator and class-transformer keep of a class',
  schema: 'from types, options and rules to JSON Schema',
  checking: 'arguments and results against schemas: parse, repair, coerce, check, tell faults, hydrate',
  discovery: 'from recorded classes and given options to frozen tools; injection',
  call: 'one call from its name to its result, the registry, work in the background',
  schedules: 'prompts for later: when they are due, and entering conversations then',
  jobs: 'started work on an engine: the engine of one process, and doing jobs as calls',
  text: 'calls in the text of models without native tool calling',
  search: 'tools by what somebody needs: an index of their words, and a port for vectors',
  loop: 'requests and calls in turn until a run ends; suspending and resuming it',
  conversation: 'several runs over one history: turns, inbox, snapshots',
  builtin: 'ready-made tools: calculator, current time',
  mcp: 'a registry as an MCP server, and the tools of MCP servers in a registry',
  'ai-sdk': 'language models of the AI SDK as providers, and the tools of a registry for its functions',
  nestjs: 'the tools of a NestJS application, through its own pipeline',
  tsyringe: 'which copy of tsyringe is used',
  stores: 'runs under way, suspended and ended, in memory and in SQLite',
  hooks: 'ready-made hooks: tools by role, masks, limits, kept results, marks of what came from outside',
  bullmq: 'started work on BullMQ, over Redis or PostgreSQL',
  'pg-boss': 'started work on pg-boss, in PostgreSQL',
  postgres: 'runs, started work and conversations in PostgreSQL',
  typegen: 'from the types and comments of a project to the generated file',
  chat: 'chats of people over HTTP, as the UI message stream of the AI SDK or as plain events',
  opentelemetry: 'runs, requests and calls as spans and metrics of OpenTelemetry',
  inspector: 'a page to see, call, hold and replay the tools of a registry, and its runs',
  satellite: 'the `tool_request` protocol over HTTP, both sides',
  testing:
    'for tests: scripted providers, a harness of tools, recordings, faults of the network, what models are offered, what a provider has to do',
  cli: 'the command `toolwright`',
  plugin: 'adapters that keep the generated file current in build tools',
  jest: 'the same for Jest',
  'providers/openai': 'OpenAI and compatible servers, by Chat Completions or Responses',
  'providers/offline': 'a deterministic stand-in without a model',
  'logging/winston': 'a logger',
  'toolbox/paths': 'paths within a folder, and patterns of paths',
  'toolbox/network': 'requests that reach no private network',
  'toolbox/openapi': 'operations of OpenAPI documents as tools',
  'toolbox/skills': 'skills of folders as tools',
  agent: 'the composition root: an agent of a model, toolboxes, permissions and a store, from code or a file',
  'toolbox/agents': 'tools by which a model asks, starts and gives way to other agents',
  'toolbox/tasks': 'tools by which a model keeps a list of tasks and speaks to the user',
  'toolbox/schedule': 'tools by which a model schedules prompts in its conversation',
  'toolbox/web': 'tools that read and search the web',
  'toolbox/permissions': 'one policy for all tools: rules, modes, standing approvals',
  'toolbox/shell': 'tools that run commands, and what commands access',
  'toolbox/sandbox': 'a shell whose commands the operating system keeps in',
  'toolbox/virtual-shell': 'a shell without processes, over a file system of the file tools',
  'toolbox/files': 'tools that read and change the files of one folder',
};

/** A room with what it takes from others, and what others take from it. */
export interface MappedRoom extends Room {
  /** Names of the rooms that it imports from. */
  readonly uses: readonly string[];
  readonly usedBy: readonly string[];
  /** What rooms import from it, by file. */
  readonly offers: readonly OfferedName[];
}

/** One export that another room imports. */
export interface OfferedName {
  readonly path: string;
  readonly name: string;
  readonly to: readonly string[];
}

/** The package's rooms by rank, with their imports; the root's door is none. */
export function mappedRooms(): MappedRoom[] {
  const rooms = new Map<string, Room>();
  for (const { path } of packageSources()) {
    const room = roomOf(path);
    if (room !== undefined && room.rank < 100) rooms.set(room.name, room);
  }
  const offers = offeredNames(rooms);
  const links = offers.flatMap(({ path, to }) => to.map((user) => [user, nameOf(path)] as const));
  return [...rooms.values()]
    .sort((room, other) => room.rank - other.rank || compare(room.name, other.name))
    .map((room) => ({
      ...room,
      uses: sorted(links.filter(([user]) => user === room.name).map(([, used]) => used)),
      usedBy: sorted(links.filter(([, used]) => used === room.name).map(([user]) => user)),
      offers: offers.filter(({ path }) => nameOf(path) === room.name),
    }));
}

function offeredNames(rooms: ReadonlyMap<string, Room>): OfferedName[] {
  const takers = new Map<string, string[]>();
  const byFile = Map.groupBy(exportedNames(), ({ path }) => path);
  for (const { from, target, name } of importedNames()) {
    const user = nameOf(from.path);
    if (!rooms.has(user) || user === nameOf(target)) continue;
    const names = name === '*' ? (byFile.get(target) ?? []).map((offered) => offered.name) : [name];
    for (const taken of names)
      takers.set(`${target} ${taken}`, [...(takers.get(`${target} ${taken}`) ?? []), user]);
  }
  return [...takers].map(([key, to]) => {
    const [path = '', name = ''] = key.split(' ');
    return { path, name, to: sorted(to) };
  });
}

/** The rooms that a room needs directly and by no other way: enough to draw. */
export function directUses(room: MappedRoom, rooms: readonly MappedRoom[]): string[] {
  const byName = new Map(rooms.map((known) => [known.name, known]));
  const reach = (name: string): Set<string> => {
    const found = new Set<string>();
    const visit = (next: string): void => {
      for (const used of byName.get(next)?.uses ?? []) {
        if (found.has(used)) continue;
        found.add(used);
        visit(used);
      }
    };
    visit(name);
    return found;
  };
  return room.uses.filter((used) => !room.uses.some((other) => other !== used && reach(other).has(used)));
}

function nameOf(path: string): string {
  return roomOf(path)?.name ?? path;
}

function sorted(names: readonly string[]): string[] {
  return [...new Set(names)].sort(compare);
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
