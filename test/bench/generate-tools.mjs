/* Generates modules with many tools: classes with ten methods for toolwright, and tools of the AI SDK with zod. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

const PER_CLASS = 10;
const VERBS = ['find', 'list', 'create', 'update', 'remove', 'archive', 'export', 'count', 'merge', 'check'];

/** Writes a TypeScript module whose classes have `count` tools in total; it exports them as `toolsets`. */
export function writeDecoratedTools(path, count) {
  const classes = Array.from({ length: count / PER_CLASS }, (_, index) => classText(index));
  const names = classes.map((_, index) => `Tools${index}`).join(', ');
  write(path, [
    "import { Integer, Param, Tool, Toolset } from '#toolwright';",
    ...classes,
    `export const toolsets = [${names}];`,
  ]);
}

/** Writes a module with `count` tools of the AI SDK with the same parameters; it exports them as `tools`. */
export function writeZodTools(path, count) {
  const tools = Array.from({ length: count }, (_, index) => zodText(index));
  write(path, [
    "import { tool } from 'ai';",
    "import { z } from 'zod';",
    'export const tools = {};',
    ...tools,
  ]);
}

function classText(index) {
  const methods = VERBS.map(
    (verb, position) => `  @Tool('${verb} the records of area ${index}, form ${position}')
  ${verb}Records(
    @Param('Words to look for') query: string,
    @Param({ description: 'At most so many', type: () => Integer, minimum: 1, maximum: 50 }) limit = 10,
    @Param({ enum: ['open', 'closed'] }) state: string,
    exact?: boolean,
  ) {
    return query + limit + state + exact;
  }`,
  );
  return `@Toolset({ prefix: 'area${index}' })\nclass Tools${index} {\n${methods.join('\n\n')}\n}`;
}

function zodText(index) {
  const area = Math.floor(index / PER_CLASS);
  const verb = VERBS[index % PER_CLASS];
  return `tools['area${area}_${verb}_records'] = tool({
  description: '${verb} the records of area ${area}, form ${index % PER_CLASS}',
  inputSchema: z.object({
    query: z.string().describe('Words to look for'),
    limit: z.int().min(1).max(50).default(10).describe('At most so many'),
    state: z.enum(['open', 'closed']),
    exact: z.boolean(),
  }),
  execute: async ({ query, limit, state, exact }) => query + limit + state + exact,
});`;
}

function write(path, parts) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${parts.join('\n\n')}\n`);
}
