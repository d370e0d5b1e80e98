/** A part of the house, and how high it stands. */
export interface Room {
  readonly name: string;
  readonly rank: number;
}

const RANKS: Readonly<Record<string, number>> = {
  kernel: 0,
  contract: 0.5,
  errors: 1,
  metadata: 2,
  validators: 3,
  schema: 4,
  checking: 5,
  search: 5.5,
  discovery: 6,
  call: 7,
  jobs: 7.5,
  schedules: 7.5,
  text: 8,
  loop: 9,
  conversation: 10,
  // Below the databases, which leaves of their own open.
  sql: 10.5,
  builtin: 11,
  mcp: 11,
  'ai-sdk': 11,
  dto: 11,
  tsyringe: 11,
  stores: 11,
  hooks: 11,
  bullmq: 11,
  'pg-boss': 11,
  postgres: 11,
  typegen: 11,
  // A door of its own, and what nestjs serves.
  chat: 10.7,
  opentelemetry: 11,
  // Over leaves: it shows what they send, and an application offers it.
  inspector: 11.2,
  // Over the toolsets: it puts them together.
  agent: 11.3,
  nestjs: 11.5,
  satellite: 12,
  testing: 12,
  cli: 12,
  plugin: 13,
  jest: 13,
};

/** Folders whose subfolders are leaves, each a room of its own. */
const LEAF_FOLDERS: Readonly<Record<string, number>> = { providers: 11, logging: 11, toolbox: 11 };

/** What several toolsets need. */
const BELOW_TOOLSETS: Readonly<Record<string, number>> = {
  'toolbox/network': 10.5,
  'toolbox/paths': 10.5,
};

/** What builds on other toolsets. */
const ABOVE_TOOLSETS: Readonly<Record<string, number>> = {
  'toolbox/sandbox': 11.1,
  'toolbox/virtual-shell': 11.1,
};

/** The declaration side: sees contract, errors and metadata, and stands right above them. */
const DECLARATION: Room = { name: 'decorators', rank: 2.5 };

/** The door sees everything below it, and nobody sees the door. */
const DOOR: Room = { name: 'src/index.ts', rank: 100 };

/** Outside: sees the package by its public names only. */
const EXAMPLES: Room = { name: 'examples', rank: 101 };

/** The room that a file belongs to; `undefined` for a file in a folder that has no rank. */
export function roomOf(path: string): Room | undefined {
  const [top, folder = '', leaf = ''] = path.split('/');
  if (top === 'decorators') return DECLARATION;
  if (top === 'examples') return EXAMPLES;
  if (path === 'src/index.ts') return DOOR;
  const leafRank = LEAF_FOLDERS[folder];
  if (leafRank !== undefined) {
    const name = `${folder}/${leaf}`;
    return { name, rank: BELOW_TOOLSETS[name] ?? ABOVE_TOOLSETS[name] ?? leafRank };
  }
  const rank = RANKS[folder];
  return top === 'src' && rank !== undefined ? { name: folder, rank } : undefined;
}

/** Whether a room is a leaf or one of the outermost: those have doors of their own. */
export function hasDoor({ rank }: Room): boolean {
  return rank > 10.5 && rank <= 13;
}
