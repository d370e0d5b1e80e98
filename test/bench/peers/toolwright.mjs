/* toolwright: calls of decorated methods by the registry. */
import { defineTool, discoverTools, ToolRegistry } from '#toolwright';
import { DtoTools } from '../.build/classes/dto-tools.js';
import { ScopedTools } from '../.build/classes/scoped-tools.js';
import { OptionTools, PlainTools } from '../.build/classes/toolsets.js';
import { jsonSchemas } from '../json-schemas.mjs';
import { zodSchemas } from '../schemas.mjs';
import { bodyOf } from '../workloads.mjs';

/** Returns the text of a `ToolResult`; `undefined` if it is an error. */
const read = ({ isError, forLLM }) => (isError ? undefined : forLLM);

export function registryOf(toolsets, options) {
  return new ToolRegistry(options).register(...discoverTools({ toolsets }));
}

function candidate(name, call, encode = (input) => input) {
  return { name, encode, call, read };
}

/** `registry.execute` of a decorated method. */
export function ownCall({ tool }) {
  const registry = registryOf([PlainTools]);
  return candidate('**toolwright** `registry.execute`', (input) => registry.execute(tool, input));
}

/** `registry.execute` with arguments as JSON text. */
export function ownTextCall({ tool }) {
  const registry = registryOf([PlainTools]);
  const call = (text) => registry.execute(tool, text);
  return candidate('**toolwright** `registry.execute`, JSON text', call, JSON.stringify);
}

/** `registry.invoke`, which also records the call, as MCP, the AI SDK and the loop use it. */
export function ownInvokeCall({ tool }) {
  const registry = registryOf([PlainTools]);
  const invoke = registry.invoker();
  const call = (input) => invoke({ id: 'call_1', name: tool, arguments: input }, {});
  return { ...candidate('**toolwright** `registry.invoke`', call), read: ({ result }) => read(result) };
}

/** A tool whose parameters are a zod schema. */
export function ownZodCall({ tool: name }) {
  const body = bodyOf(name);
  const execute = async (args) => body(args);
  const tool = defineTool({ name, description: name, parameters: zodSchemas[name], execute });
  const registry = new ToolRegistry().register(tool);
  return candidate('**toolwright** with a zod schema', (input) => registry.execute(name, input));
}

/** A tool whose argument is a class-validator class. */
export function ownDtoCall({ tool }) {
  const registry = registryOf([DtoTools]);
  return candidate('**toolwright** with a DTO class', (input) => registry.execute(`dto_${tool}`, input));
}

/** W1 with one option each, in the order of the table. */
export function ownOptionCalls() {
  const plain = registryOf([PlainTools]);
  const withOptions = registryOf([OptionTools]);
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
    candidate('no options', (input) => plain.execute('add', input)),
    candidate('scope with data', (input) => plain.executeWithContext('add', input, scope)),
    candidate('context parameter', (input) => withOptions.execute('add_with_context', input)),
    candidate('signal parameter', (input) => withOptions.execute('add_with_signal', input)),
    candidate('timeout of the tool', (input) => withOptions.execute('add_in_time', input)),
    candidate('timeout of the registry', (input) => timed.execute('add', input)),
    candidate('signal of the run', (input) =>
      plain.executeWithContext('add', input, { signal: controller.signal }),
    ),
    countingCandidate('policy', (count) => ({ policy: allowing(count) })),
    countingCandidate('logger with a counter, info level', (count) => ({ logger: loggerWith(count) })),
    countingCandidate('logger with all levels disabled', (count) => ({
      logger: { ...loggerWith(count), isLevelEnabled: off(count) },
    })),
    countingCandidate('logger without `isLevelEnabled`, such as `console`', (count) => ({
      logger: { ...loggerWith(count), isLevelEnabled: undefined },
    })),
    countingCandidate('empty hook `afterCall`', (count) => ({ hooks: [{ afterCall: count }] })),
    countingCandidate('three empty hooks', (count) => ({
      hooks: [{ beforeCall: count, beforeRun: count, afterCall: count }],
    })),
    candidate('approval that is not required', (input) => approved.execute('add', input)),
    candidate('instance per call (tsyringe scoped)', (input) => scoped.execute('add_scoped', input)),
  ];
}

/** A candidate that counts the calls of its option; without calls, the option has no effect and is not measured. */
function countingCandidate(name, optionsWith) {
  let counted = 0;
  const count = () => {
    counted += 1;
  };
  const registry = registryOf([PlainTools], optionsWith(count));
  const base = candidate(name, (input) => registry.execute('add', input));
  return { ...base, isUsed: () => counted > 0 };
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
