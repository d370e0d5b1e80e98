/** A part of the source: a folder in one of the nine folders of `src`, or code outside them. */
export interface Part {
  /** `run/loop`. */
  readonly name: string;
  /** The position of its folder; a higher folder may import lower ones. */
  readonly rank: number;
  /** The position within its folder. */
  readonly order: number;
}

/** The folders of `src` and their parts, bottom layer first. Parts in the same array do not import each other. */
const FOLDERS: readonly Readonly<Record<string, readonly (readonly string[])[]>>[] = [
  { core: [['kernel'], ['contract'], ['errors'], ['metadata']] },
  { tools: [['validators'], ['schema'], ['checking'], ['search'], ['discovery'], ['dto', 'tsyringe']] },
  { run: [['call'], ['jobs', 'schedules'], ['text'], ['loop'], ['conversation'], ['hooks']] },
  {
    models: [['wire'], ['ai-sdk', 'offline', 'openai']],
    durable: [['sql'], ['stores', 'postgres', 'bullmq', 'pg-boss']],
    observe: [['opentelemetry', 'winston']],
  },
  { surfaces: [['chat', 'mcp'], ['inspector'], ['nestjs', 'satellite']] },
  {
    toolbox: [
      ['network', 'paths'],
      ['builtin', 'files', 'openapi', 'permissions', 'schedule', 'shell', 'skills', 'tasks', 'web', 'agents'],
      ['sandbox', 'virtual-shell'],
      ['agent'],
    ],
  },
  { dev: [['typegen'], ['cli', 'testing'], ['jest', 'plugin']] },
];

const PARTS: ReadonlyMap<string, Part> = new Map(
  FOLDERS.flatMap((row, rank) =>
    Object.entries(row).flatMap(([folder, lines]) =>
      lines.flatMap((parts, order) =>
        parts.map((part) => [`${folder}/${part}`, { name: `${folder}/${part}`, rank, order }] as const),
      ),
    ),
  ),
);

/** Decorators import only `core`. */
const DECORATORS: Part = { name: 'decorators', rank: 0.5, order: 0 };

/** The entry point of the package may import everything in `src`. */
const ROOT: Part = { name: 'src/index.ts', rank: 100, order: 0 };

/** Examples import only public names. */
const EXAMPLES: Part = { name: 'examples', rank: 101, order: 0 };

/** The part that a file belongs to; `undefined` for a file in a folder that is not listed. */
export function partOf(path: string): Part | undefined {
  const [top, folder, part] = path.split('/');
  if (top === 'decorators') return DECORATORS;
  if (top === 'examples') return EXAMPLES;
  if (path === 'src/index.ts') return ROOT;
  return top === 'src' ? PARTS.get(`${folder}/${part}`) : undefined;
}

/** Whether one part may import another, types included. */
export function mayImport(from: Part, to: Part): boolean {
  if (from.name === to.name || to.rank < from.rank) return true;
  const [folder] = from.name.split('/');
  return to.rank === from.rank && to.order < from.order && to.name.startsWith(`${folder}/`);
}

/** The names of the nine folders. */
export function folderNames(): readonly string[] {
  return FOLDERS.flatMap((row) => Object.keys(row));
}
