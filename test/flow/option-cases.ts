import 'reflect-metadata';
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { Test } from '@nestjs/testing';
import { metrics, trace } from '@opentelemetry/api';
import { OpenAI } from 'openai';
import {
  type AnsweredRun,
  type AnswerOptions,
  type AnswerStoredRunOptions,
  type AnswersOptions,
  answerStoredRun,
  type CallScope,
  type CancelledRun,
  type CompensateOptions,
  type CompletionModel,
  type CompletionRequest,
  Conversation,
  type ConversationConfig,
  type ConversationIdleOptions,
  Conversations,
  type ConversationsCloseOptions,
  type ConversationsConfig,
  type ConversationsOptions,
  cancelRun,
  compensateRun,
  complete,
  type DiscoverOptions,
  defineTool,
  discoverTools,
  type EventsOptions,
  type IdleOptions,
  type LLMProvider,
  type LoopGuardOptions,
  MemoryJobEngine,
  type NameFilter,
  type PromptOptions,
  type RecoverOptions,
  type ResumeConfig,
  type ResumeOptions,
  type RunJobsOptions,
  recoverRuns,
  resumeStoredRun,
  resumeToolLoop,
  runJobs,
  runToolLoop,
  type StoredRun,
  streamResumedToolLoop,
  streamToolLoop,
  TaskQueue,
  type TaskQueueOptions,
  type TextToolsOptions,
  Tool,
  ToolCallParser,
  type ToolCallParserOptions,
  type ToolLoopConfig,
  ToolRegistry,
  type ToolRegistryOptions,
  Toolset,
  type TurnOptions,
  withTextTools,
} from 'toolwright';
import { type AgentOptions, createAgent } from 'toolwright/agent';
import { type AiSdkToolsOptions, type FromAiSdkOptions, fromAiSdk, toAiSdkTools } from 'toolwright/ai-sdk';
import { type CurrentTimeOptions, createCurrentTimeTool } from 'toolwright/builtin';
import { type BullmqEngineOptions, bullmqEngine } from 'toolwright/bullmq';
import { type ChatHandlerOptions, createChatHandler } from 'toolwright/chat';
import { createInspector, type InspectorOptions } from 'toolwright/inspector';
import {
  connectMcp,
  createMcpServer,
  fileTokens,
  followMcpTools,
  type McpAuth,
  type McpConnectOptions,
  type McpServerOptions,
  type McpSessionOptions,
  type McpTaskOptions,
  type McpToolsOptions,
  mcpTools,
} from 'toolwright/mcp';
import {
  ToolwrightModule,
  type ToolwrightModuleAsyncOptions,
  type ToolwrightModuleOptions,
} from 'toolwright/nestjs';
import { OfflineProvider } from 'toolwright/offline';
import { OpenAIProvider, type OpenAIProviderOptions } from 'toolwright/openai';
import { type OpenTelemetryOptions, openTelemetry } from 'toolwright/opentelemetry';
import { type PgBossEngineOptions, pgBossEngine } from 'toolwright/pg-boss';
import {
  before,
  esbuild,
  type GenerateProjectOptions,
  ReadonlyVisitor,
  rolldown,
  rollup,
  rspack,
  vite,
  webpack,
} from 'toolwright/plugin';
import {
  PostgresConversationStore,
  type PostgresConversationStoreOptions,
  type PostgresOptions,
  PostgresRunStore,
} from 'toolwright/postgres';
import {
  type AssistantHandlerOptions,
  type CorsOptions,
  createAssistantHandler,
  MemoryConversationStore,
  SatelliteClient,
  type SatelliteClientOptions,
  type SatelliteRunOptions,
  type SatelliteSendOptions,
  SqliteConversationStore,
  type SqliteConversationStoreOptions,
} from 'toolwright/satellite';
import {
  MemoryRunStore,
  type MemoryRunStoreOptions,
  SqliteRunStore,
  type SqliteRunStoreOptions,
} from 'toolwright/stores';
import {
  expectToolSurface,
  faultyFetch,
  type HttpBackendOptions,
  httpBackend,
  type JobEngineBackend,
  jobEngineConformance,
  type ProviderConformanceOptions,
  providerConformance,
  type RandomFaults,
  type RecordedFetchOptions,
  type RunStoreConformanceOptions,
  recordedFetch,
  runStoreConformance,
  ScriptedProvider,
  type ScriptedReply,
  type ToolHarnessOptions,
  type ToolSurfaceOptions,
  toolHarness,
} from 'toolwright/testing';
import { type NewSchedule, Schedules, type SchedulesOptions } from 'toolwright/toolbox/schedule';
import { createLogger, type LoggerOptions } from 'toolwright/winston';

/** An entry point that takes options. */
export interface OptionCase {
  readonly name: string;
  /** All its options, each with a valid value. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Options that refuse an explicit `undefined`. */
  readonly protecting: readonly string[];
  readonly required: readonly string[];
  /** Options that accept any value. */
  readonly open: readonly string[];
  /** The prefix of option names in faults. */
  readonly path: string;
  call(options: unknown): unknown;
}

/** Calls that were made in spite of invalid options. */
export const happened: string[] = [];

const provider: LLMProvider = {
  async chat() {
    happened.push('a request');
    return { content: 'Hello', toolCalls: [], finishReason: 'stop' };
  },
};

const languageModel: LanguageModelV4 = {
  specificationVersion: 'v4',
  provider: 'p',
  modelId: 'm',
  supportedUrls: {},
  async doGenerate() {
    happened.push('a request');
    const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 };
    const usage = { inputTokens: tokens, outputTokens: { total: 1, text: 1, reasoning: 0 } };
    return { content: [], finishReason: { unified: 'stop', raw: 'stop' }, usage, warnings: [] };
  },
  async doStream() {
    throw new Error('not asked for');
  },
};

type AiSdkModelOptions = Omit<
  LanguageModelV4CallOptions,
  'prompt' | 'tools' | 'toolChoice' | 'responseFormat' | 'includeRawChunks' | 'abortSignal'
>;

const served: Required<HttpBackendOptions> = {
  create: () => provider,
  encode: ({ text }) => ({ text }),
  encodeFailure: ({ message }) => message,
  model: 'm',
  options: {},
};
const work = defineTool({ name: 'work', description: 'Works', execute: () => happened.push('a call') });
const tools = new ToolRegistry().register(work);
const store = new MemoryRunStore();
const fails = async (): Promise<never> => Promise.reject(new Error('there is no database'));
const { signal } = new AbortController();
const engine = new MemoryJobEngine();

@Toolset()
class Shop {
  @Tool('Works')
  work() {
    return happened.push('a call');
  }
}

const scope: Required<CallScope> = {
  channel: 'web',
  chatId: '7',
  conversationId: 'c1',
  callId: 'call_1',
  owner: { user: 'u1' },
  scopes: [],
  messages: [],
  signal,
  onUpdate: () => {},
  onLog: () => {},
  data: { user: 'u1' },
  container: { resolve: () => undefined as never },
};

const config: Required<ToolLoopConfig> = {
  provider,
  model: 'm',
  tools,
  detector: 'native',
  maxIterations: 5,
  llmOptions: {},
  toolChoice: 'auto',
  parallelToolCalls: true,
  output: { type: 'object', properties: { answer: { type: 'string' } } },
  providerRetries: 1,
  fallback: [provider, { provider, model: 'n' }],
  history: 'repair',
  deferAbove: 10_000,
  toolEmbedder: { embed: async (texts) => texts.map(() => [1]) },
  compactHistory: (messages) => messages,
  prepareStep: () => undefined,
  maxRetries: 1,
  maxConcurrency: 2,
  toolTimeoutMs: 1000,
  onLimit: 'return',
  loopGuard: false,
  policy: () => true,
  hooks: [{ name: 'audit', afterCall: () => undefined }],
  budget: { steps: 100 },
  maxResultChars: 1000,
  store,
  checkpoint: 'step',
  leaseMs: 1000,
  runId: 'r1',
  answerWithinMs: 1000,
  onExpiry: 'refuse',
  stateSecret: 'a secret of thirty-two characters',
  engine,
  signal,
  logger: console,
  telemetry: openTelemetry(),
  agentName: 'shop',
  onAsyncResult: () => {},
  tasks: new TaskQueue(),
};

const registryOptions: Required<ToolRegistryOptions> = {
  logger: console,
  telemetry: openTelemetry(),
  logArguments: false,
  redact: ['pin'],
  toolTimeoutMs: 1000,
  describeError: String,
  policy: () => true,
  hooks: [{ name: 'audit', afterCall: () => undefined }],
  coerce: true,
  maxResultChars: 1000,
  tasks: new TaskQueue(),
  engine,
  store,
};

const { checkpoint: _1, leaseMs: _2, runId: _3, ...ofTurns } = config;

const conversation: Required<ConversationConfig> = {
  ...ofTurns,
  systemPrompt: 'Be brief.',
  id: 'c1',
  messages: [],
  scope,
};

const { signal: _4, runId: _5, leaseMs: _6, tools: _7, ...ofAgent } = config;
const agentOptions: Required<Omit<AgentOptions, 'configFile'>> = {
  ...ofAgent,
  checkpoint: 'step',
  systemPrompt: 'Be brief.',
  folder: import.meta.dirname,
  toolboxes: [tools],
  store: new MemoryRunStore(),
  skills: import.meta.dirname,
  mcp: {},
  permissions: { mode: 'ask' },
  container: scope.container,
  conversations: { takesTurns: false },
  folderConfigFile: 'none.json',
};

const turn: Required<TurnOptions> = { signal, scope };
const answer: Required<AnswerOptions> = { ...turn, answeredBy: 'clerk' };
const clientOptions = { url: 'http://127.0.0.1:1', tools };
const { chatId, channel, data, container } = scope;
const satelliteRun: Required<SatelliteRunOptions> = {
  chatId,
  channel,
  data,
  container,
  signal,
  onEvent: () => {},
};

const conversationsOptions: Required<ConversationsOptions> = {
  store,
  config: { provider, model: 'm' },
  engine,
  jobTools: tools,
  scope: () => ({}),
  takesTurns: false,
  maxConcurrency: 2,
  jobConcurrency: 2,
  onUnknown: 'ask',
  leaseMs: 1000,
  pollMs: 1000,
  logger: console,
};
const turnConfig: Required<ConversationsConfig> = (() => {
  const { store: _1, engine: _2, signal: _3, runId: _4, leaseMs: _5, ...turn } = config;
  return { ...turn, checkpoint: 'step', systemPrompt: 'Be brief.' };
})();
const conversations = () => new Conversations(conversationsOptions);
const keyed: Required<Pick<PromptOptions, 'key' | 'owner'>> = { key: 'k1', owner: { user: 'u1' } };

const moduleOptions: Required<ToolwrightModuleOptions> = (() => {
  const { signal: _1, tools: _2, ...loop } = config;
  return {
    ...loop,
    ...registryOptions,
    strict: false,
    tools: [work],
    data: () => ({}),
    owner: () => 'u1',
    visible: () => true,
    mayAnswer: () => false,
    scopeOf: () => ({}),
    jobScope: () => ({}),
    conversations: { systemPrompt: 'Be brief.', maxConcurrency: 2, pollMs: 1000 },
    chat: { protocol: 'ag-ui' },
    worker: false,
    inspector: false,
    exposeErrors: false,
    shutdownTimeoutMs: 10,
  };
})();

const scripted: Required<ScriptedReply> = {
  content: '',
  toolCalls: [],
  finishReason: 'stop',
  usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
  attachments: [],
};

type McpAddress = Extract<McpConnectOptions, { readonly url: string }>;
type McpProgram = Extract<McpConnectOptions, { readonly command: string }>;

const mcpAuth: Required<McpAuth> = {
  redirectUrl: 'http://127.0.0.1:33333/callback',
  onSignIn: String,
  clientId: 'agent',
  clientSecret: 'unlikely',
  issuer: 'https://auth.example.com',
  clientMetadataUrl: 'https://agent.example.com/client.json',
  scopes: ['orders:read'],
  account: 'ada',
  tokens: fileTokens('tokens.json'),
};

const mcpToolsOptions: Required<McpToolsOptions> = {
  allow: ['a'],
  deny: ['b'],
  prefix: 'shop',
  timeoutMs: 1000,
  background: ['import_*'],
  fillDefaults: true,
  logger: console,
  telemetry: openTelemetry(),
  approve: () => true,
  onChange: () => {},
  onError: () => {},
};

/** A client that must not be connected. */
function connect(): never {
  happened.push('a connection');
  throw new Error('nobody is there');
}

interface Facts {
  readonly protecting?: readonly string[];
  readonly required?: readonly string[];
  readonly open?: readonly string[];
  readonly path?: string;
}

/** `Required<Options>` makes sure that every option is tested. */
function optionCase<Options extends object>(
  name: string,
  options: Required<Options>,
  facts: Facts & { readonly call: (options: Options) => unknown },
): OptionCase {
  return {
    protecting: [],
    required: [],
    open: [],
    path: '',
    ...facts,
    name,
    options: { ...options },
    call: (given) => facts.call(given as Options),
  };
}

const ofRun = { protecting: ['policy', 'hooks', 'budget', 'stateSecret'], required: ['provider', 'model'] };
/** An engine needs a store, and a lease needs checkpoints. */
const withEngine = { ...ofRun, protecting: [...ofRun.protecting, 'store'] };
const ofBeginning = { ...withEngine, protecting: [...withEngine.protecting, 'checkpoint'] };
const ofConversation = { ...ofRun, protecting: [...ofRun.protecting, 'scope'] };
const ofResume = { protecting: ofRun.protecting, required: ['provider'] };
const ofScope = { protecting: ['owner'], open: ['owner'] };
const ofModule = [
  'policy',
  'hooks',
  'budget',
  'stateSecret',
  'redact',
  'describeError',
  'owner',
  'visible',
  'mayAnswer',
  'scopeOf',
  'jobScope',
  // Required, because an engine is configured.
  'store',
];
const suspended = { version: 2 } as never;

async function createApplication(root: ReturnType<typeof ToolwrightModule.forRoot>): Promise<void> {
  const module = await Test.createTestingModule({ imports: [root] })
    .setLogger(false as never)
    .compile();
  await module.close();
}

export const LOOP_CASES: readonly OptionCase[] = [
  optionCase<ToolLoopConfig>('runToolLoop', config, {
    ...ofBeginning,
    call: (given) => runToolLoop(given, []),
  }),
  optionCase<ConversationsOptions>('Conversations', conversationsOptions, {
    // `scope` and `engine` protect: without an engine, the job options have no effect.
    protecting: ['scope', 'engine'],
    required: ['store', 'config'],
    call: (given) => new Conversations(given).close(),
  }),
  optionCase<ConversationsConfig>('the config of Conversations', turnConfig, {
    ...ofRun,
    call: (given) => new Conversations({ ...conversationsOptions, config: given }).close(),
  }),
  optionCase<ChatHandlerOptions>(
    'createChatHandler',
    {
      conversations: conversations(),
      authenticate: () => 'u1',
      mayAnswer: () => false,
      protocol: 'events',
      abortOnLeave: false,
      describeError: () => 'It failed.',
      maxRequestBytes: 1000,
      heartbeatMs: 1000,
      logger: console,
    },
    {
      required: ['conversations', 'authenticate'],
      protecting: ['mayAnswer'],
      call: createChatHandler,
    },
  ),
  optionCase<InspectorOptions>(
    'createInspector',
    {
      provider,
      model: 'm',
      systemPrompt: 'Be brief.',
      store: new MemoryRunStore(),
      stateSecret: 'k that has at least thirty-two characters'.repeat(32),
      scope: () => ({}),
      answeredBy: 'u1',
      scopeOf: () => ({}),
      surroundings: () => [],
      token: 't'.repeat(16),
      allowedHosts: ['dev.example'],
      path: '/inspector',
      allowInProduction: true,
      tests: { folder: 'test', setup: "import { tools } from './tools.js';" },
      recordings: 'recordings',
    },
    {
      protecting: [
        'answeredBy',
        'allowInProduction',
        'allowedHosts',
        'scope',
        'scopeOf',
        'stateSecret',
        'token',
      ],
      call: (given) => createInspector(new ToolRegistry(), given).close(),
    },
  ),
  optionCase<PromptOptions>(
    'Conversations.prompt',
    { ...keyed, onlyOwner: false, replaces: 'k0' },
    {
      protecting: ['owner', 'onlyOwner'],
      open: ['owner'],
      call: (given) => conversations().prompt('c1', 'Hi', given),
    },
  ),
  optionCase<AnswersOptions>(
    'Conversations.answer',
    { ...keyed, answeredBy: 'clerk' },
    {
      protecting: ['owner'],
      open: ['owner', 'answeredBy'],
      call: (given) => conversations().answer('c1', [], given),
    },
  ),
  optionCase<EventsOptions>(
    'Conversations.events',
    { after: 1, upTo: 2, signal },
    { call: (given) => conversations().events('c1', given) },
  ),
  optionCase<ConversationIdleOptions>(
    'Conversations.idle',
    { signal },
    { call: (given) => conversations().idle('nobody', given) },
  ),
  optionCase<ConversationsCloseOptions>(
    'Conversations.close',
    { timeoutMs: 10 },
    { call: (given) => conversations().close(given) },
  ),
  optionCase<AnsweredRun>(
    'answerStoredRun, the run',
    { store, runId: 'r1' },
    { required: ['store', 'runId'], call: (given) => answerStoredRun(given, []) },
  ),
  optionCase<AnswerStoredRunOptions>(
    'answerStoredRun',
    {
      owner: { user: 'u1' },
      answeredBy: 'clerk',
      stateSecret: 'a secret of thirty-two characters',
      tools: [],
    },
    {
      protecting: ['owner', 'stateSecret'],
      open: ['owner', 'answeredBy'],
      call: (given) => answerStoredRun({ store, runId: 'r1' }, [], given),
    },
  ),
  optionCase<CancelledRun>(
    'cancelRun',
    { store, runId: 'r1', reason: 'closed' },
    { required: ['store', 'runId'], call: cancelRun },
  ),
  optionCase<ToolLoopConfig>('streamToolLoop', config, {
    ...ofBeginning,
    call: (given) => streamToolLoop(given, []).result,
  }),
  optionCase<ResumeConfig>('resumeToolLoop', config, {
    ...ofResume,
    call: (given) => resumeToolLoop(given, suspended, []),
  }),
  optionCase<ResumeConfig>('streamResumedToolLoop', config, {
    ...ofResume,
    call: (given) => streamResumedToolLoop(given, suspended, []).result,
  }),
  optionCase<ResumeConfig>('resumeStoredRun', config, {
    ...ofResume,
    call: (given) => resumeStoredRun(given, { store, runId: 'r1' }, []),
  }),
  optionCase<StoredRun>(
    'the stored run of resumeStoredRun',
    { store, runId: 'r1', leaseMs: 1000 },
    { required: ['store', 'runId'], call: (given) => resumeStoredRun(config, given, []) },
  ),
  optionCase<CompensateOptions>(
    'compensateRun',
    { tools, scope, logger: console, leaseMs: 1000 },
    { protecting: ['scope'], required: ['tools'], call: (given) => compensateRun(store, 'r1', given) },
  ),
  optionCase<RecoverOptions>(
    'recoverRuns',
    {
      store,
      config,
      scope: () => ({}),
      onUnknown: 'ask',
      maxConcurrency: 1,
      leaseMs: 1000,
      signal,
      onResult: () => {},
    },
    {
      protecting: ['scope'],
      required: ['store', 'config'],
      open: ['config'],
      call: (given) => recoverRuns(given),
    },
  ),
  optionCase<ResumeOptions>(
    'the options of resumeToolLoop',
    { scope, answeredBy: 'clerk', model: 'm' },
    {
      protecting: ['scope'],
      open: ['answeredBy'],
      call: (given) => resumeToolLoop(config, suspended, [], given),
    },
  ),
  optionCase<CallScope>('the scope of runToolLoop', scope, {
    ...ofScope,
    call: (given) => runToolLoop(config, [], given),
  }),
  optionCase<CallScope>('the scope of resumeToolLoop', scope, {
    ...ofScope,
    call: (given) => resumeToolLoop(config, suspended, [], given),
  }),
  optionCase<LoopGuardOptions>(
    'loopGuard',
    { tellAt: 2, endAt: 4 },
    { path: 'loopGuard.', call: (loopGuard) => runToolLoop({ ...config, loopGuard }, []) },
  ),
  optionCase<CompletionModel>(
    'complete',
    { provider, model: 'm', llmOptions: {}, signal, telemetry: openTelemetry() },
    { required: ['provider', 'model'], call: (given) => complete(given, { messages: [] }) },
  ),
  optionCase<CompletionRequest>(
    'the request of complete',
    { messages: [], systemPrompt: '', tools: [] },
    { required: ['messages'], call: (given) => complete({ provider, model: 'm' }, given) },
  ),
  optionCase<ConversationConfig>('Conversation', conversation, {
    ...ofConversation,
    call: (given) => new Conversation(given),
  }),
  optionCase<ConversationConfig>('Conversation.restore', conversation, {
    ...ofConversation,
    call: (given) => Conversation.restore(given, {} as never),
  }),
  optionCase<CallScope>('the scope of a Conversation', scope, {
    ...ofScope,
    path: 'scope.',
    call: (given) => new Conversation({ provider, model: 'm', scope: given }),
  }),
  optionCase<TurnOptions>('Conversation.prompt', turn, {
    protecting: ['scope'],
    call: (given) => new Conversation({ provider, model: 'm' }).prompt('Hi', given),
  }),
  optionCase<AnswerOptions>('Conversation.answer', answer, {
    protecting: ['scope'],
    open: ['answeredBy'],
    call: (given) => new Conversation({ provider, model: 'm' }).answer([], given),
  }),
  optionCase<IdleOptions>(
    'Conversation.idle',
    { tasks: true },
    { call: (given) => new Conversation({ provider, model: 'm' }).idle(given) },
  ),
];

export const TOOL_CASES: readonly OptionCase[] = [
  optionCase<ToolRegistryOptions>('ToolRegistry', registryOptions, {
    protecting: ['redact', 'describeError', 'policy', 'hooks', 'store'],
    call: (given) => new ToolRegistry(given),
  }),
  optionCase<NameFilter>(
    'ToolRegistry.view',
    { allow: ['a'], deny: ['b'] },
    { protecting: ['allow', 'deny'], call: (given) => tools.view(given) },
  ),
  optionCase<DiscoverOptions>(
    'discoverTools',
    { toolsets: [Shop], container: { resolve: () => new Shop() as never }, strict: true, logger: console },
    { open: ['container'], call: (given) => discoverTools(given) },
  ),
  optionCase<TaskQueueOptions>('TaskQueue', { maxRunning: 2 }, { call: (given) => new TaskQueue(given) }),
  optionCase<TextToolsOptions>(
    'withTextTools',
    { instructions: () => '' },
    { call: (given) => withTextTools(provider, given) },
  ),
  optionCase<ToolCallParserOptions>(
    'ToolCallParser',
    { tools: ['a'] },
    { call: (given) => new ToolCallParser(given) },
  ),
  optionCase<CurrentTimeOptions>(
    'createCurrentTimeTool',
    { now: () => new Date() },
    { call: (given) => createCurrentTimeTool(given) },
  ),
  optionCase<ToolHarnessOptions>(
    'toolHarness',
    { overrides: [], data: {} },
    { call: (given) => toolHarness(Shop, given) },
  ),
];

export const OUTER_CASES: readonly OptionCase[] = [
  optionCase<OpenAIProviderOptions>(
    'OpenAIProvider',
    {
      apiKey: 'k',
      baseURL: 'http://127.0.0.1:1/v1',
      organization: 'o',
      project: 'p',
      headers: {},
      defaultHeaders: {},
      defaultQuery: {},
      timeoutMs: 5,
      timeout: 5,
      maxRetries: 0,
      api: 'responses',
      store: false,
      strict: 'auto',
      responseFormat: true,
      toolSearch: true,
      fetch,
      fetchOptions: {},
      logLevel: 'off',
      logger: console,
      dangerouslyAllowBrowser: false,
      client: new OpenAI({ apiKey: 'k', baseURL: 'http://127.0.0.1:1/v1' }),
    },
    { open: ['fetchOptions'], call: (given) => new OpenAIProvider(given) },
  ),
  optionCase<OpenTelemetryOptions>(
    'openTelemetry',
    { content: { arguments: true }, tracerProvider: trace, meterProvider: metrics },
    { call: (given) => openTelemetry(given) },
  ),
  optionCase<FromAiSdkOptions>(
    'fromAiSdk',
    {
      ...{ maxRetries: 0, providerTools: {}, strict: 'auto', responseFormat: true, toolReferences: true },
      ...{ itemKey: 'k', logger: console },
    },
    { call: (given) => fromAiSdk(languageModel, given) },
  ),
  optionCase<AiSdkModelOptions>(
    'the llmOptions of an AI SDK model',
    {
      maxOutputTokens: 5,
      temperature: 0,
      stopSequences: ['.'],
      topP: 1,
      topK: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      seed: 7,
      reasoning: 'low',
      headers: {},
      providerOptions: {},
    },
    {
      call: (given) => fromAiSdk(languageModel).chat({ model: 'm', messages: [], options: given as never }),
    },
  ),
  optionCase<AiSdkToolsOptions>(
    'toAiSdkTools',
    { policy: () => true, toolTimeoutMs: 5, onAsyncResult: () => {}, approvals: 'response' },
    { protecting: ['policy', 'approvals'], call: (given) => toAiSdkTools(tools, {}, given) },
  ),
  optionCase<{ readonly year?: number }>(
    'OfflineProvider',
    { year: 2026 },
    { call: (given) => new OfflineProvider(given) },
  ),
  optionCase<ScriptedReply>('a reply of ScriptedProvider', scripted, {
    open: ['content', 'finishReason', 'usage', 'attachments'],
    call: (given) => new ScriptedProvider([given]),
  }),
  optionCase<RandomFaults>(
    'the plan of faultyFetch',
    { seed: 1, rate: 0.5, faults: [{ kind: 'reset' }] },
    { required: ['seed', 'rate', 'faults'], call: (given) => faultyFetch(fetch, given) },
  ),
  optionCase<Required<RecordedFetchOptions>>(
    'recordedFetch',
    { file: import.meta.filename, mode: 'replay', fetch, redact: (text) => text },
    { required: ['file'], call: (given) => recordedFetch(given) },
  ),
  optionCase<Required<ProviderConformanceOptions>>(
    'providerConformance',
    { name: 'MyProvider', backend: () => httpBackend(served), without: ['files'], timeoutMs: 5 },
    { required: ['name', 'backend'], call: (given) => providerConformance(given) },
  ),
  optionCase<Required<HttpBackendOptions>>('httpBackend', served, {
    required: ['create', 'encode'],
    call: async (given) => (await httpBackend(given)).close?.(),
  }),
  optionCase<Omit<Required<ToolSurfaceOptions>, 'surface'>>(
    'expectToolSurface',
    { file: import.meta.filename, update: false, allow: [] },
    { required: ['file'], call: (given) => expectToolSurface(tools, given) },
  ),
  optionCase<MemoryRunStoreOptions>(
    'MemoryRunStore',
    { now: Date.now },
    { call: (given) => new MemoryRunStore(given) },
  ),
  optionCase<SqliteRunStoreOptions>(
    'SqliteRunStore',
    { path: ':memory:', busyTimeoutMs: 5, now: Date.now },
    { required: ['path'], call: (given) => new SqliteRunStore(given).close() },
  ),
  optionCase<SchedulesOptions>(
    'Schedules',
    { store: new MemoryRunStore(), maxSchedules: 5, minIntervalMs: 60_000, timeZone: 'Europe/Vienna' },
    { required: ['store'], call: (given) => new Schedules(given) },
  ),
  optionCase<NewSchedule>(
    'Schedules.add',
    {
      conversationId: 'c1',
      owner: { user: 'u1' },
      text: 'Look',
      at: '2030-05-17T09:00',
      inMinutes: 5,
      everyMinutes: 5,
      cron: '@daily',
      timeZone: 'UTC',
      key: 'k',
      onlyKnown: false,
      onlyOnce: false,
    },
    {
      protecting: ['owner'],
      required: ['conversationId', 'text'],
      open: ['owner'],
      call: (given) => new Schedules({ store: new MemoryRunStore() }).add(given),
    },
  ),
  optionCase<Omit<AgentOptions, 'configFile'>>('createAgent', agentOptions, {
    protecting: [...withEngine.protecting, 'permissions', 'folderConfigFile'],
    required: ['provider', 'model'],
    call: async (given) => (await createAgent(given)).close(),
  }),
  optionCase<RunJobsOptions>(
    'runJobs',
    {
      engine,
      store,
      tools,
      jobScope: () => ({}),
      concurrency: 2,
      policy: () => true,
      onAsyncResult: () => {},
      logger: console,
      sweepMs: 5000,
      silentForMs: 1000,
      missingToolMs: 1000,
    },
    {
      protecting: ['jobScope', 'policy'],
      required: ['engine', 'store', 'tools'],
      call: async (given) => (await runJobs(given)).close(),
    },
  ),
  optionCase<BullmqEngineOptions>(
    'bullmqEngine',
    {
      connection: { host: '127.0.0.1', port: 1, lazyConnect: true },
      backend: () => {},
      queue: 'jobs',
      prefix: 'shop',
      leaseMs: 1000,
      keepEndedMs: 0,
      logger: console,
    },
    { required: ['connection'], open: ['connection'], call: (given) => bullmqEngine(given) },
  ),
  optionCase<PgBossEngineOptions>(
    'pgBossEngine',
    {
      connection: 'postgres://127.0.0.1:1/none',
      schema: 'pgboss',
      queue: 'jobs',
      heartbeatSeconds: 10,
      transactional: true,
      logger: console,
    },
    { required: ['connection'], call: (given) => pgBossEngine(given) },
  ),
  optionCase<JobEngineBackend>(
    'jobEngineConformance',
    {
      open: () => new MemoryJobEngine(),
      startWorker: async () => ({ kill: async () => {} }),
      patienceMs: 1000,
    },
    { required: ['open'], call: (given) => jobEngineConformance(given) },
  ),
  optionCase<Omit<PostgresOptions, 'connectionString'>>(
    'PostgresRunStore with a pool',
    {
      pool: { query: fails, connect: fails },
      ...{ schema: 'shop', statementTimeoutMs: 5_000, reconnectMs: 0 },
    },
    { required: ['pool'], call: (given) => new PostgresRunStore(given) },
  ),
  optionCase<Omit<PostgresConversationStoreOptions, 'pool'>>(
    'PostgresConversationStore',
    {
      connectionString: 'postgres://app@127.0.0.1/shop',
      ...{ schema: 'shop', statementTimeoutMs: 5_000, reconnectMs: 0, expiresAfterMs: 1_000 },
    },
    { required: ['connectionString'], call: (given) => new PostgresConversationStore(given) },
  ),
  optionCase<Pick<PostgresOptions, 'connectionString'>>(
    'PostgresRunStore with a connection string',
    { connectionString: 'postgres://app@127.0.0.1/shop' },
    { required: ['connectionString'], call: (given) => new PostgresRunStore(given) },
  ),
  optionCase<RunStoreConformanceOptions>(
    'runStoreConformance',
    { name: 'MyRunStore', open: () => ({ store, advance: () => {} }), checkpoints: true, results: true },
    { required: ['name', 'open'], call: (given) => runStoreConformance(given) },
  ),
  optionCase<AssistantHandlerOptions>(
    'createAssistantHandler',
    {
      provider,
      model: 'm',
      systemPrompt: 'Be brief.',
      llmOptions: {},
      telemetry: openTelemetry(),
      store: new MemoryConversationStore(),
      logger: console,
      token: 't',
      owner: () => 'u1',
      rateLimit: () => true,
      cors: { origins: '*' },
      basePath: '/assistant',
      maxBodyBytes: 100,
      maxMessages: 10,
      heartbeatMs: 100,
    },
    {
      protecting: ['token', 'owner', 'rateLimit'],
      required: ['provider', 'model'],
      call: (given) => createAssistantHandler(given),
    },
  ),
  optionCase<CorsOptions>(
    'cors of createAssistantHandler',
    { origins: '*' },
    {
      path: 'cors.',
      required: ['origins'],
      call: (cors) => createAssistantHandler({ provider, model: 'm', cors }),
    },
  ),
  optionCase<NonNullable<ConstructorParameters<typeof MemoryConversationStore>[0]>>(
    'MemoryConversationStore',
    { maxConversations: 2, expiresAfterMs: 1000, now: Date.now },
    { call: (given) => new MemoryConversationStore(given) },
  ),
  optionCase<SqliteConversationStoreOptions>(
    'SqliteConversationStore',
    { path: ':memory:', maxConversations: 2, expiresAfterMs: 1000, now: Date.now },
    { required: ['path'], call: (given) => new SqliteConversationStore(given).close() },
  ),
  optionCase<SatelliteClientOptions>(
    'SatelliteClient',
    {
      ...clientOptions,
      token: 't',
      headers: {},
      maxIterations: 2,
      maxRetries: 0,
      timeoutMs: 100,
      maxReplyBytes: 100,
      toolTimeoutMs: 100,
      maxResultChars: 100,
      logger: console,
    },
    { required: ['url', 'tools'], call: (given) => new SatelliteClient(given) },
  ),
  optionCase<SatelliteSendOptions>(
    'SatelliteClient.send',
    { ...satelliteRun, conversationId: 'c1' },
    { call: (given) => new SatelliteClient({ ...clientOptions, maxRetries: 0 }).send('Hi', given) },
  ),
  optionCase<SatelliteRunOptions>('SatelliteClient.resume', satelliteRun, {
    call: (given) => new SatelliteClient({ ...clientOptions, maxRetries: 0 }).resume('c1', given),
  }),
  optionCase<LoggerOptions>(
    'createLogger',
    { level: 'silent', json: true, file: '/dev/null', stream: process.stderr },
    { call: (given) => createLogger(given).close() },
  ),
  optionCase<McpServerOptions>(
    'createMcpServer',
    {
      name: 'shop',
      version: '1.0.0',
      title: 'Shop',
      instructions: 'Buy',
      pageSize: 10,
      scope: () => ({}),
      visible: () => ({}),
      policy: () => true,
      toolTimeoutMs: 100,
      telemetry: openTelemetry(),
      onAsyncResult: () => {},
      allowedHosts: 'any',
      allowedOrigins: 'any',
      oauth: { resource: 'https://api.example.org/mcp', issuer: 'https://auth.example.org' },
      sessions: false,
      tasks: new MemoryRunStore(),
      maxRequestBytes: 100,
      maxUnreadBytes: 100,
      principal: () => 'u1',
      stateKey: 'a secret of at least 32 characters!',
      configure: () => {},
      onError: () => {},
    },
    {
      protecting: [
        'scope',
        'visible',
        'policy',
        'allowedHosts',
        'allowedOrigins',
        'oauth',
        'principal',
        'stateKey',
      ],
      call: (given) => createMcpServer(tools, given),
    },
  ),
  optionCase<McpSessionOptions>(
    'sessions of createMcpServer',
    { idleMs: 100, max: 2, maxPerPrincipal: 2, replay: 2 },
    { path: 'sessions.', call: (sessions) => createMcpServer(tools, { sessions }) },
  ),
  optionCase<McpAddress>(
    'connectMcp',
    { url: 'https://shop.example.com/mcp', headers: { 'x-team': 'shop' }, auth: mcpAuth },
    { required: ['url'], call: connectMcp },
  ),
  optionCase<McpProgram>(
    'connectMcp, a program',
    { command: 'npx', args: ['shop'], env: { SHOP: 'corner' }, cwd: '.' },
    { required: ['command'], call: connectMcp },
  ),
  optionCase<McpAuth>('auth of connectMcp', mcpAuth, {
    path: 'auth.',
    // A client secret needs its client id.
    protecting: ['issuer', 'account', 'clientId'],
    call: (auth) => connectMcp({ url: 'https://shop.example.com/mcp', auth }),
  }),
  optionCase<McpTaskOptions>(
    'tasks of createMcpServer',
    { store: new MemoryRunStore(), required: ['import_*'], leaseMs: 1_000 },
    {
      path: 'tasks.',
      protecting: ['required'],
      required: ['store'],
      call: (tasks) => createMcpServer(new ToolRegistry(), { tasks }),
    },
  ),
  optionCase<McpToolsOptions>('mcpTools', mcpToolsOptions, {
    protecting: ['allow', 'deny', 'approve'],
    call: (given) => mcpTools(connect, given),
  }),
  optionCase<McpToolsOptions>('followMcpTools', mcpToolsOptions, {
    protecting: ['allow', 'deny', 'approve'],
    call: (given) => followMcpTools(new ToolRegistry(), connect, given),
  }),
];

export const NEST_CASES: readonly OptionCase[] = [
  optionCase<ToolwrightModuleOptions>('ToolwrightModule.forRoot', moduleOptions, {
    protecting: ofModule,
    call: (given) => createApplication(ToolwrightModule.forRoot(given)),
  }),
  optionCase<ToolwrightModuleOptions>('the options from a factory of ToolwrightModule', moduleOptions, {
    protecting: ofModule,
    call: (given) => createApplication(ToolwrightModule.forRootAsync({ useFactory: () => given })),
  }),
  optionCase<Pick<ToolwrightModuleAsyncOptions, 'imports' | 'useFactory' | 'inject'>>(
    'ToolwrightModule.forRootAsync',
    { imports: [], useFactory: () => ({}), inject: [] },
    { required: ['useFactory'], call: (given) => ToolwrightModule.forRootAsync(given) },
  ),
];

const generation: Required<GenerateProjectOptions> = {
  project: 'nowhere/tsconfig.json',
  out: 'nowhere.txt',
  importEnding: 'js',
  strict: true,
};

const PLUGINS = { vite, rollup, rolldown, esbuild, webpack, rspack };

export const PLUGIN_CASES: readonly OptionCase[] = [
  ...Object.entries(PLUGINS).map(([name, plugin]) =>
    optionCase<GenerateProjectOptions>(name, generation, { call: (given) => plugin(given) }),
  ),
  optionCase<GenerateProjectOptions>('before', generation, { call: (given) => before(given) }),
  optionCase<GenerateProjectOptions>('ReadonlyVisitor', generation, {
    call: (given) => new ReadonlyVisitor(given),
  }),
];
