// Prints which functions of the sources are executed by each of the walks below, when everything is warm.
import { existsSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { SourceMap } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '..', '..');
const dist = join(root, 'dist');
const { defineTool, discoverTools, Param, resumeToolLoop, runToolLoop, Tool, ToolRegistry, Toolset } =
  await import(pathToFileURL(join(dist, 'src/index.js')).href);

const WARM_TIMES = 600;
const USER = { role: 'user', content: 'Go' };
const parameters = {
  type: 'object',
  properties: { q: { type: 'string' }, limit: { type: 'integer', minimum: 1, maximum: 100 } },
  required: ['q'],
};
const args = { q: 'shoes', limit: 10 };

function registryWith(options) {
  const tool = defineTool({
    name: 'find',
    description: 'Finds',
    parameters,
    execute: () => 'found',
    ...options,
  });
  return new ToolRegistry().register(tool);
}

/** A model that makes one call and then has its say. */
const provider = {
  async chat({ messages }) {
    const isFirst = messages.at(-1).role === 'user';
    const toolCalls = isFirst ? [{ id: 'call_1', name: 'find', arguments: args }] : [];
    return { content: isFirst ? '' : 'done', toolCalls, finishReason: isFirst ? 'tool_calls' : 'stop' };
  },
};

/** A new class each time: what is measured is the discovery of one that was never seen. */
function toolset() {
  class Shop {
    find(_q, _limit) {
      return 'found';
    }
  }
  Reflect.defineMetadata('design:paramtypes', [String, Number], Shop.prototype, 'find');
  Param('Words to look for')(Shop.prototype, 'find', 0);
  Tool('Finds')(Shop.prototype, 'find', Object.getOwnPropertyDescriptor(Shop.prototype, 'find'));
  Toolset()(Shop);
  return Shop;
}

const plain = registryWith({});
const approved = registryWith({ approval: true });
const run = (tools) => runToolLoop({ provider, model: 'm', tools }, [USER]);

/** Each prepares what it needs, and then does what is measured. */
const WALKS = {
  execute: { prepare: () => {}, walk: () => plain.execute('find', args) },
  'turn with a call': { prepare: () => {}, walk: () => run(plain) },
  'discover a method': { prepare: toolset, walk: (shop) => discoverTools({ toolsets: [shop] }) },
  suspend: { prepare: () => {}, walk: () => run(approved) },
  resume: {
    prepare: () => run(approved),
    walk: ({ state, pending }) =>
      resumeToolLoop(
        { provider, tools: approved },
        state,
        pending.map(({ id }) => ({ id, approved: true })),
      ),
  },
};

const session = new Session();
session.connect();

/** Answered at once: the session is of this very thread. */
function post(method, params) {
  let answer;
  session.post(method, params, (error, result) => {
    if (error) throw error;
    answer = result;
  });
  return answer;
}

const maps = new Map();

/** What is loaded late is CommonJS and has no map. */
function mapOf(file) {
  return existsSync(`${file}.map`)
    ? new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')))
    : undefined;
}

/** Where a function of the built files stands in the sources. */
function sourceOf(url, offset) {
  const file = fileURLToPath(url);
  if (!maps.has(file)) maps.set(file, { text: readFileSync(file, 'utf8'), map: mapOf(file) });
  const { text, map } = maps.get(file);
  const before = text.slice(0, offset);
  const line = before.split('\n').length - 1;
  if (map === undefined) return { file: relative(root, file).replaceAll('\\', '/'), line: line + 1 };
  const { originalSource, originalLine } = map.findEntry(line, offset - before.lastIndexOf('\n') - 1);
  if (originalSource === undefined) return undefined;
  const path = originalSource.startsWith('file:')
    ? fileURLToPath(originalSource)
    : join(dirname(file), originalSource);
  return { file: relative(root, path).replaceAll('\\', '/'), line: originalLine + 1 };
}

/** Functions that have run since the last time, by their sources. */
function taken() {
  const { result } = post('Profiler.takePreciseCoverage');
  const walked = new Set();
  for (const { url, functions } of result) {
    if (!url.startsWith(pathToFileURL(dist).href)) continue;
    for (const { functionName, ranges } of functions) {
      const [{ count, startOffset }] = ranges;
      // Modules and initializers of fields are functions to the engine alone.
      if (count === 0 || startOffset === 0 || functionName.startsWith('<')) continue;
      const source = sourceOf(url, startOffset);
      if (source !== undefined && !source.file.startsWith('node_modules'))
        walked.add(`${source.file}:${source.line} ${functionName || '(anonymous)'}`);
    }
  }
  return [...walked].sort();
}

post('Profiler.enable');
post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const walks = {};
for (const [name, { prepare, walk }] of Object.entries(WALKS)) {
  for (let time = 0; time < WARM_TIMES; time += 1) await walk(await prepare());
  const prepared = await prepare();
  taken();
  await walk(prepared);
  walks[name] = taken();
}
process.stdout.write(JSON.stringify(walks));
