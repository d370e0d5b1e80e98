import 'reflect-metadata';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as toolwright from 'toolwright';
import {
  Conversation,
  defineTool,
  type LLMProvider,
  type ToolContext,
  ToolRegistry,
  ToolResult,
  ToolwrightError,
} from 'toolwright';
import { createCurrentTimeTool } from 'toolwright/builtin';
import { createMcpServer, followMcpTools, listRoots, mcpTools, sampleMessage } from 'toolwright/mcp';
import { ToolwrightModule, toolCallOf } from 'toolwright/nestjs';
import { OfflineProvider } from 'toolwright/offline';
import { OpenAIProvider } from 'toolwright/openai';
import {
  createAssistantHandler,
  SatelliteClient,
  toNodeHandler,
  toolRequestPrompt,
} from 'toolwright/satellite';
import { MemoryRunStore, SqliteRunStore } from 'toolwright/stores';
import { ScriptedProvider, toolHarness } from 'toolwright/testing';
import { createLogger } from 'toolwright/winston';

/** A wrong value from JavaScript or a cast. */
type Given = never;
const WRONG: readonly unknown[] = [null, 5, {}, 'x', undefined, () => 1];

const provider: LLMProvider = {
  chat: async () => ({ content: 'Hello', toolCalls: [], finishReason: 'stop' }),
};
const config = { provider, model: 'm' };
const messages = [{ role: 'user', content: 'Hi' }] as const;
const call = { id: 'c1', name: 'ping', arguments: '{}' };
const stored = { store: new MemoryRunStore(), runId: 'r1' };
const satellite = { url: 'http://127.0.0.1:1', tools: new ToolRegistry(), maxRetries: 0 };
/** Connects to nothing. */
const connect = (): never => {
  throw new ToolwrightError('ProviderFailed', 'nobody is there');
};

class Shop {
  ping(_name: string) {}
}

function ping(): ToolRegistry {
  return new ToolRegistry().register(
    defineTool({ name: 'ping', description: 'Pings', execute: () => 'pong' }),
  );
}

const talk = (): Conversation => new Conversation(config);
const SAYING_NOTHING = [
  ...['', ' \n', [], [{ type: 'nope' }], [{ type: 'text', text: ' ' }]],
  ...[[{ text: 'Hi' }], [{ type: 'text' }]],
];
const {
  agentTool,
  compensateRun,
  answerWait,
  Args,
  asyncResult,
  Context,
  complete,
  describeClass,
  discoverTools,
  errorResult,
  Param,
  parseToolRequest,
  RetryToolCall,
  registerFunction,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runToolLoop,
  silentResult,
  streamResumedToolLoop,
  streamToolLoop,
  TaskQueue,
  Tool,
  ToolCallParser,
  Toolset,
  toolResult,
  toolToSchema,
  userResult,
  withTextTools,
} = toolwright;

/** The faults of a class with these decorators, all of which are reported. */
function discovered(decorate: (target: typeof Shop) => void): unknown {
  class Tools extends Shop {
    override ping(_name: string) {}
  }
  Reflect.defineMetadata('design:paramtypes', [String], Tools.prototype, 'ping');
  decorate(Tools);
  return discoverTools({ toolsets: [Tools] });
}

function decorated(toolset: object, tool: object | string, parameter?: ParameterDecorator): unknown {
  return discovered((target) => {
    parameter?.(target.prototype, 'ping', 0);
    Tool(tool)(target.prototype, 'ping', {});
    Toolset(toolset)(target);
  });
}

type Case = readonly [name: string, call: (given: Given) => unknown];

const ROOT: readonly Case[] = [
  ['@Args', (given) => decorated({}, 'Pings', Args(given))],
  ['@Args', (given) => decorated({}, 'Pings', Args({ groups: given }))],
  ['@Param', (given) => decorated({}, 'Pings', Param(given))],
  [
    '@Param',
    (given) => decorated({}, 'Pings', Param({ description: given, type: given, enum: given, items: given })),
  ],
  ['@Tool', (given) => decorated({}, given)],
  [
    '@Tool',
    (given) => decorated({}, { description: given, parameters: given, output: given, annotations: given }),
  ],
  ['@Toolset', (given) => decorated(given, 'Pings')],
  ['@Toolset', (given) => decorated({ name: given, description: given, scope: given }, 'Pings')],
  ['Args', (given) => Args(given)(Shop.prototype, 'ping', 0)],
  ['Decorators, such as @Args', (given) => Args()(given, 'ping', 0)],
  ['Decorators, such as @Context', (given) => Context()(given, 'ping', 0)],
  ['Param', (given) => Param(given)(Shop.prototype, 'ping', 0)],
  ['Decorators, such as @Param', (given) => Param('x')(given, 'ping', 0)],
  ['Tool', (given) => Tool(given)(Shop.prototype, 'ping', {})],
  ['Decorators, such as @Tool', (given) => Tool('x')(given, 'ping', {})],
  ['Toolset', (given) => Toolset(given)(class {})],
  ['Decorators, such as @Toolset', (given) => Toolset()(given)],
  ['describeClass', (given) => describeClass(given, {})],
  ['describeClass', (given) => describeClass(class {}, given)],
  ['toolResult', (given) => toolResult(given)],
  ['errorResult', (given) => errorResult(given)],
  ['userResult', (given) => userResult(given)],
  ['silentResult', (given) => silentResult(given)],
  ['asyncResult', (given) => asyncResult(given)],
  ['ToolResult', (given) => new ToolResult(given)],
  ['ToolResult.fromJSON', (given) => ToolResult.fromJSON(given)],
  ['RetryToolCall', (given) => new RetryToolCall(given)],
  ['ToolwrightError', (given) => ToolwrightError.is(given)],
  ['Conversation', (given) => new Conversation(given)],
  ['loop’s config', (given) => Conversation.restore(given, talk().toJSON())],
  ['snapshot', (given) => Conversation.restore(config, given)],
  ['Conversation.prompt', (given) => talk().prompt(given)],
  ['Conversation.prompt', (given) => talk().prompt('Hi', given)],
  ['answers', (given) => talk().answer(given)],
  ['Conversation.subscribe', (given) => talk().subscribe(given)],
  ['Conversation.cancel', (given) => talk().cancel(given)],
  ['Conversation.idle', (given) => talk().idle(given)],
  ['parseToolRequest', (given) => parseToolRequest(given)],
  ['withTextTools', (given) => withTextTools(given)],
  ['withTextTools', (given) => withTextTools(provider, given)],
  ['ToolCallParser', (given) => new ToolCallParser(given)],
  ['ToolCallParser.parse', (given) => new ToolCallParser().parse(given)],
  ['agentTool', (given) => agentTool(given)],
  ['defineTool', (given) => defineTool(given)],
  ['discoverTools', (given) => discoverTools(given)],
  ['discoverTools', (given) => discoverTools({ toolsets: given })],
  ['discoverTools', (given) => discoverTools({ toolsets: [given] })],
  ['answerWait', (given) => answerWait(given, { approved: true })],
  ['answerWait', (given) => answerWait({ wait: { kind: 'approval', index: 0 }, journal: given }, given)],
  ['TaskQueue', (given) => new TaskQueue(given)],
  ['complete', (given) => complete(given, { messages })],
  ['complete', (given) => complete(config, given)],
  ['complete', (given) => complete(config, { messages: given })],
  ['history', (given) => complete(config, { messages: [given] })],
  ['complete', (given) => complete(config, { messages, tools: given })],
  ['toolToSchema', (given) => complete(config, { messages, tools: [given] })],
  ['loop’s config', (given) => runToolLoop(given, messages)],
  ['history', (given) => runToolLoop(config, given)],
  ['history', (given) => runToolLoop(config, [given])],
  ['scope', (given) => runToolLoop(config, messages, given)],
  ['tools', (given) => runToolLoop({ ...config, tools: given }, messages)],
  ['register', (given) => runToolLoop({ ...config, tools: [given] }, messages)],
  ['loop’s config', (given) => streamToolLoop(given, messages).result],
  ['history', (given) => streamToolLoop(config, given).result],
  ['loop’s config', (given) => resumeToolLoop(given, {} as never, [])],
  ['state', (given) => resumeToolLoop(config, given, [])],
  ['resume', (given) => resumeToolLoop(config, {} as never, [], given)],
  ['state', (given) => streamResumedToolLoop(config, given, []).result],
  ['resumeStoredRun', (given) => resumeStoredRun(config, given, [])],
  ['recoverRuns', (given) => recoverRuns(given)],
  ['compensateRun', (given) => compensateRun(given, 'r1', { tools: [] })],
  ['compensateRun', (given) => compensateRun(stored.store, 'r1', given)],
  ['loop’s config', (given) => resumeStoredRun(given, stored, [])],
  ['run', (given) => resumeStoredRun(config, stored, given)],
  ['registerFunction', (given) => registerFunction(given, 'f', 'x', [], () => 1)],
  ['registerFunction', (given) => registerFunction(ping(), given, 'x', [], () => 1)],
  ['registerFunction', (given) => registerFunction(ping(), 'f', 'x', given, () => 1)],
  ['registerFunction', (given) => registerFunction(ping(), 'f', 'x', [given], (a) => a)],
  ['registerFunction', (given) => registerFunction(ping(), 'f', 'x', [], given)],
  ['ToolRegistry', (given) => new ToolRegistry(given)],
  ['register', (given) => ping().register(given)],
  ['ToolRegistry.merge', (given) => ping().merge(given)],
  ['ToolRegistry.view', (given) => ping().view(given)],
  ['ToolRegistry.onChange', (given) => ping().onChange(given)],
  ['ToolRegistry.unregister', (given) => ping().unregister(given)],
  ['ToolRegistry.get', (given) => ping().get(given)],
  ['toolToSchema', (given) => toolToSchema(given)],
];

/** Methods that run a tool return error results and never throw. */
const CALLS: readonly Case[] = [
  ['execute', (given) => ping().execute(given)],
  ['execute', (given) => ping().execute('ping', given)],
  ['executeWithContext', (given) => ping().executeWithContext(given, {})],
  ['executeWithContext', (given) => ping().executeWithContext('ping', {}, given)],
  ['executeWithContext', (given) => ping().executeWithContext('ping', {}, {}, given)],
  ['call', (given) => ping().call(given)],
  ['call', (given) => ping().call(call, given)],
  ['invoke', (given) => ping().invoke(given)],
  ['invoke', (given) => ping().invoke(call, given)],
];

/** Methods of the context of a tool. What they throw becomes the result. */
const CONTEXT: readonly (readonly [string, (context: ToolContext, given: Given) => unknown])[] = [
  ['context.ask', (context, given) => context.ask(given)],
  ['context.ask', (context, given) => context.ask({ message: given })],
  ['context.ask', (context, given) => context.ask({ message: 'Sure?', schema: given })],
  ['context.once', (context, given) => context.once(given, () => 1)],
  ['context.once', (context, given) => context.once('key', given)],
  ['context.background', (context, given) => context.background(given)],
  ['context.resolve', (context, given) => context.resolve(given)],
  ['context.progress', (context, given) => context.progress(given)],
];

const LEAVES: readonly Case[] = [
  ['TaskQueue.subscribe', (given) => new TaskQueue().subscribe(given)],
  ['removeOlderThan', (given) => new MemoryRunStore().removeOlderThan(given)],
  ['removeOlderThan', (given) => new SqliteRunStore({ path: ':memory:' }).removeOlderThan(given)],
  ['McpToolServer.connect', (given) => createMcpServer(ping()).connect(given)],
  ['OpenAIProvider', (given) => new OpenAIProvider(given)],
  ['OpenAIProvider.chat', (given) => new OpenAIProvider({ apiKey: 'k' }).chat(given)],
  ['OpenAIProvider.stream', (given) => new OpenAIProvider({ apiKey: 'k' }).stream(given).next()],
  ['OfflineProvider', (given) => new OfflineProvider(given)],
  ['OfflineProvider.chat', (given) => new OfflineProvider().chat(given)],
  ['createLogger', (given) => createLogger(given).close()],
  ['ScriptedProvider', (given) => new ScriptedProvider(given)],
  ['ScriptedProvider', (given) => new ScriptedProvider([given])],
  ['ScriptedProvider.chat', (given) => new ScriptedProvider([{ content: 'x' }]).chat(given)],
  ['toolHarness', (given) => toolHarness(given)],
  ['toolHarness', (given) => toolHarness(Shop, given)],
  ['toolHarness', (given) => toolHarness(Shop, { overrides: given })],
  ['toolHarness', (given) => toolHarness(Shop, { overrides: [given] })],
  ['createCurrentTimeTool', (given) => createCurrentTimeTool(given)],
  ['SatelliteClient', (given) => new SatelliteClient(given)],
  ['SatelliteClient', (given) => new SatelliteClient({ ...satellite, url: given } as never)],
  ['SatelliteClient', (given) => new SatelliteClient({ ...satellite, tools: given } as never)],
  ['SatelliteClient.send', (given) => new SatelliteClient(satellite).send(given)],
  ['SatelliteClient.resume', (given) => new SatelliteClient(satellite).resume(given)],
  ['createAssistantHandler', (given) => createAssistantHandler(given)],
  ['createAssistantHandler', (given) => createAssistantHandler(config)(given)],
  ['toNodeHandler', (given) => toNodeHandler(given)],
  ['toolRequestPrompt', (given) => toolRequestPrompt(given)],
  ['createMcpServer', (given) => createMcpServer(given)],
  ['createMcpServer', (given) => createMcpServer(ping(), given)],
  ['mcpTools', (given) => mcpTools(given)],
  ['followMcpTools', (given) => followMcpTools(ping(), given)],
  ['followMcpTools', (given) => followMcpTools(given, connect)],
  ['listRoots', (given) => listRoots(given)],
  ['sampleMessage', (given) => sampleMessage(given, {} as never)],
  ['ToolwrightModule.forRootAsync', (given) => ToolwrightModule.forRootAsync(given)],
  ['ToolwrightModule.forFeature', (given) => ToolwrightModule.forFeature(given)],
  ['toolCallOf', (given) => toolCallOf(given)],
];

/** Messages of JavaScript engines for values that were not checked. */
const RAW =
  /Cannot (read|destructure|convert|use|set|access)|is not (a function|iterable|a constructor|an object|defined)|reading '|called on non-object|invalid argument|Class constructor|\[object Object\]/i;

/** The thrown error, if any. */
async function thrownBy(call: Case[1], given: unknown): Promise<unknown> {
  try {
    await call(given as Given);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The text of the result. */
async function answerOf(call: Case[1], given: unknown): Promise<string> {
  const came = Object(await call(given as Given));
  return came.content ?? (came.result ?? came).forLLM;
}

let key: string | undefined;
beforeAll(() => {
  key = process.env.OPENAI_API_KEY;
  delete process.env.OPENAI_API_KEY;
});
afterAll(() => {
  if (key !== undefined) process.env.OPENAI_API_KEY = key;
});

describe('a wrong argument is reported in plain words, not in those of the JavaScript engine', () => {
  test.each([...ROOT, ...LEAVES])('%s', async (name, call) => {
    for (const given of WRONG) {
      const told = await thrownBy(call, given);
      if (told === undefined) continue;
      const { message } = told as Error;
      expect(message).not.toMatch(RAW);
      // Declaration errors have their own location in the message.
      if (ToolwrightError.is(told) || message.includes('cannot be reached')) continue;
      expect(told).toBeInstanceOf(TypeError);
      expect(message).toContain(name.split(',')[0]);
    }
  });

  test.each(CONTEXT)('%s, as a result', async (name, use) => {
    for (const given of WRONG) {
      const tool = defineTool({
        name: 'work',
        description: 'Works',
        execute: async (_args, context) => String(await use(context, given as Given)),
      });
      const { forLLM, isError } = await new ToolRegistry().register(tool).execute('work');
      expect(forLLM).not.toMatch(isError ? RAW : /^$/);
      if (isError && !forLLM.startsWith("The tool 'work'")) expect(forLLM).toContain(name);
    }
  });

  test.each(CALLS)('ToolRegistry.%s, as a result', async (_name, call) => {
    for (const given of WRONG) {
      const told = await answerOf(call, given);
      expect(told).toMatch(/^(pong|tool not found: |Validation failed|1 mistake in options)/);
      expect(told).not.toMatch(RAW);
    }
  });
});

test.each<[string, object, string]>([
  ['an invalid signal', { signal: 'x' }, "signal is 'x'"],
  ['a misspelled name', { singal: new AbortController().signal }, 'did you mean `signal`?'],
  ['an empty owner', { owner: null }, 'owner is null'],
  ['an invalid listener', { onUpdate: 5 }, 'onUpdate is 5'],
])(
  'ToolRegistry with %s in the scope returns an error, and the tool does not run',
  async (_, scope, text) => {
    let calls = 0;
    const tools = new ToolRegistry().register(
      defineTool({ name: 'ping', description: 'Pings', execute: () => ++calls }),
    );
    const error = { name: 'InvalidOptions', code: 521, message: expect.stringContaining(text) };
    const given = scope as Given;
    expect(await tools.executeWithContext('ping', {}, given)).toMatchObject({ isError: true, error });
    expect(await tools.invoke(call, given)).toMatchObject({ status: 'settled', result: { error } });
    expect(await tools.call(call, given)).toMatchObject({
      isError: true,
      content: expect.stringContaining(text),
    });
    expect(calls).toBe(0);
  },
);

test.each(SAYING_NOTHING)('an empty prompt is refused: %j', async (content) => {
  const conversations = new toolwright.Conversations({ store: stored.store, config });
  const refusal = {
    code: 521,
    message: expect.stringContaining('a non-empty string, or a list of non-empty parts'),
  };
  await expect(conversations.prompt('c1', content)).rejects.toMatchObject(refusal);
  expect(await conversations.snapshot('c1')).toBeUndefined();
  await conversations.close();
  await expect(talk().prompt(content)).rejects.toMatchObject(refusal);
});

test.each([undefined, null, {}, { state: {} }, { state: {}, entries: [] }, 'r1'])(
  'foldRun refuses a value that is not a stored run: %j',
  (given) => {
    expect(() => toolwright.foldRun(given as Given)).toThrow(
      expect.objectContaining({ code: 521, message: expect.stringContaining('await store.read(runId)') }),
    );
  },
);

test.each([null, undefined, {}, 'yes'])(
  'answerStoredRun refuses answers that are not a list: %j',
  async (given) => {
    const answering = toolwright.answerStoredRun({ ...stored, runId: 'nowhere' }, given as Given);
    await expect(answering).rejects.toMatchObject({ code: 521, message: expect.stringContaining('answers') });
  },
);
