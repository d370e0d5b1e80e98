/* Ours: the registry's calls of decorated methods. */
import { defineTool, discoverTools, ToolRegistry } from '#toolwright';
import { DtoTools } from '../.build/classes/dto-tools.js';
import { ScopedTools } from '../.build/classes/scoped-tools.js';
import { PlainTools, RicherTools } from '../.build/classes/toolsets.js';
import { jsonSchemas } from '../json-schemas.mjs';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** Reads a `ToolResult` as the candidates of the benchmark are read. */
const read = ({ isError, forLLM }) => (isError ? undefined : forLLM);

/** A registry with toolsets. */
export function registryOf(toolsets, options) {
  return new ToolRegistry(options).register(...discoverTools({ toolsets }));
}

function candidate(name, call, encode = (input) => input) {
  return { name, encode, call, read };
}

/** `registry.execute` of a decorated method. */
export function ourCall({ tool }) {
  const registry = registryOf([PlainTools]);
  return candidate('**toolwright** `registry.execute`', (input) => registry.execute(tool, input));
}

/** The same with arguments as JSON text. */
export function ourTextCall({ tool }) {
  const registry = registryOf([PlainTools]);
  const call = (text) => registry.execute(tool, text);
  return candidate('**toolwright** `registry.execute`, JSON text', call, JSON.stringify);
}

/** `registry.invoke`, the way of MCP, the AI SDK and the loop: with the record of the call. */
export function ourInvokedCall({ tool }) {
  const registry = registryOf([PlainTools]);
  const invoke = registry.invoker();
  const call = (input) => invoke({ id: 'call_1', name: tool, arguments: input }, {});
  return { ...candidate('**toolwright** `registry.invoke`', call), read: ({ result }) => read(result) };
}

/** A tool whose parameters are a zod schema. */
export function ourZodCall({ tool: name }) {
  const body = bodyOf(name);
  const execute = async (args) => body(args);
  const tool = defineTool({ name, description: name, parameters: zodSchemas[name], execute });
  const registry = new ToolRegistry().register(tool);
  return candidate('**toolwright** with a zod schema', (input) => registry.execute(name, input));
}

/** The same with a class-validator class as the argument. */
export function ourDtoCall({ tool }) {
  const registry = registryOf([DtoTools]);
  return candidate('**toolwright** with a DTO class', (input) => registry.execute(`dto_${tool}`, input));
}

/** W1 with each addition alone, in the order of the table. */
export function ourAdditions() {
  const plain = registryOf([PlainTools]);
  const richer = registryOf([RicherTools]);
  const scoped = registryOf([ScopedTools]);
  const timed = registryOf([PlainTools], { toolTimeoutMs: 60_000 });
  const approved = new ToolRegistry().register(
    defineTool({
      name: 'add',
      description: 'Add two numbers',
      parameters: jsonSchemas.add,
      approval: { when: () => false },
      execute: async ({ a, b }) => a + b,
    }),
  );
  const controller = new AbortController();
  const scope = { channel: 'cli', chatId: 'c1', callId: 'call_1', data: { userId: 'u1' } };
  return [
    candidate('nothing added', (input) => plain.execute('add', input)),
    candidate('a scope with data', (input) => plain.executeWithContext('add', input, scope)),
    candidate('a context parameter', (input) => richer.execute('add_with_context', input)),
    candidate('a signal parameter', (input) => richer.execute('add_with_signal', input)),
    candidate('a timeout of the tool', (input) => richer.execute('add_in_time', input)),
    candidate('a timeout of the registry', (input) => timed.execute('add', input)),
    candidate('a signal of the run', (input) =>
      plain.executeWithContext('add', input, { signal: controller.signal }),
    ),
    counting('a policy', (count) => ({ policy: allowing(count) })),
    counting('a logger that counts, info level', (count) => ({ logger: loggerWith(count) })),
    counting('a logger, levels off', (count) => ({
      logger: { ...loggerWith(count), isLevelEnabled: off(count) },
    })),
    counting('a logger that writes all levels, as `console`', (count) => ({
      logger: { ...loggerWith(count), isLevelEnabled: undefined },
    })),
    counting('an empty hook `afterCall`', (count) => ({ hooks: [{ afterCall: count }] })),
    counting('three empty hooks', (count) => ({
      hooks: [{ beforeCall: count, beforeRun: count, afterCall: count }],
    })),
    candidate('an approval that is not needed', (input) => approved.execute('add', input)),
    candidate('an instance per call (tsyringe scoped)', (input) => scoped.execute('add_scoped', input)),
  ];
}

/** A candidate that knows how often its option was asked; never means that the framework does not know it yet. */
function counting(name, optionsWith) {
  let counted = 0;
  const count = () => {
    counted += 1;
  };
  const registry = registryOf([PlainTools], optionsWith(count));
  const made = candidate(name, (input) => registry.execute('add', input));
  return { ...made, isInUse: () => counted > 0 };
}

function allowing(count) {
  return () => {
    count();
    return { allow: true };
  };
}

function off(count) {
  return () => {
    count();
    return false;
  };
}

function loggerWith(count) {
  return {
    debug: count,
    info: count,
    warn: count,
    error: count,
    isLevelEnabled: (level) => level !== 'debug',
  };
}
