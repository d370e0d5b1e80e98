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
export interface Door {
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
  enter(options: unknown): unknown;
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
function door<Options extends object>(
  name: string,
  options: Required<Options>,
  facts: Facts & { readonly enter: (options: Options) => unknown },
): Door {
  return {
    protecting: [],
    required: [],
    open: [],
    path: '',
    ...facts,
    name,
    options: { ...options },
    enter: (given) => facts.enter(given as Options),
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

export const LOOP_DOORS: readonly Door[] = [
  door<ToolLoopConfig>('runToolLoop', config, { ...ofBeginning, enter: (given) => runToolLoop(given, []) }),
  door<ConversationsOptions>('Conversations', conversationsOptions, {
    // `scope` and `engine` protect: without an engine, the job options have no effect.
    protecting: ['scope', 'engine'],
    required: ['store', 'config'],
    enter: (given) => new Conversations(given).close(),
  }),
  door<ConversationsConfig>('the config of Conversations', turnConfig, {
    ...ofRun,
    enter: (given) => new Conversations({ ...conversationsOptions, config: given }).close(),
  }),
  door<ChatHandlerOptions>(
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
      enter: createChatHandler,
    },
  ),
  door<InspectorOptions>(
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
      enter: (given) => createInspector(new ToolRegistry(), given).close(),
    },
  ),
  door<PromptOptions>(
    'Conversations.prompt',
    { ...keyed, onlyOwner: false, replaces: 'k0' },
    {
      protecting: ['owner', 'onlyOwner'],
      open: ['owner'],
      enter: (given) => conversations().prompt('c1', 'Hi', given),
    },
  ),
  door<AnswersOptions>(
    'Conversations.answer',
    { ...keyed, answeredBy: 'clerk' },
    {
      protecting: ['owner'],
      open: ['owner', 'answeredBy'],
      enter: (given) => conversations().answer('c1', [], given),
    },
  ),
  door<EventsOptions>(
    'Conversations.events',
    { after: 1, upTo: 2, signal },
    { enter: (given) => conversations().events('c1', given) },
  ),
  door<ConversationIdleOptions>(
    'Conversations.idle',
    { signal },
    { enter: (given) => conversations().idle('nobody', given) },
  ),
  door<ConversationsCloseOptions>(
    'Conversations.close',
    { timeoutMs: 10 },
    { enter: (given) => conversations().close(given) },
  ),
  door<AnsweredRun>(
    'answerStoredRun, the run',
    { store, runId: 'r1' },
    { required: ['store', 'runId'], enter: (given) => answerStoredRun(given, []) },
  ),
  door<AnswerStoredRunOptions>(
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
      enter: (given) => answerStoredRun({ store, runId: 'r1' }, [], given),
    },
  ),
  door<CancelledRun>(
    'cancelRun',
    { store, runId: 'r1', reason: 'closed' },
    { required: ['store', 'runId'], enter: cancelRun },
  ),
  door<ToolLoopConfig>('streamToolLoop', config, {
    ...ofBeginning,
    enter: (given) => streamToolLoop(given, []).result,
  }),
  door<ResumeConfig>('resumeToolLoop', config, {
    ...ofResume,
    enter: (given) => resumeToolLoop(given, suspended, []),
  }),
  door<ResumeConfig>('streamResumedToolLoop', config, {
    ...ofResume,
    enter: (given) => streamResumedToolLoop(given, suspended, []).result,
  }),
  door<ResumeConfig>('resumeStoredRun', config, {
    ...ofResume,
    enter: (given) => resumeStoredRun(given, { store, runId: 'r1' }, []),
  }),
  door<StoredRun>(
    'the stored run of resumeStoredRun',
    { store, runId: 'r1', leaseMs: 1000 },
    { required: ['store', 'runId'], enter: (given) => resumeStoredRun(config, given, []) },
  ),
  door<CompensateOptions>(
    'compensateRun',
    { tools, scope, logger: console, leaseMs: 1000 },
    { protecting: ['scope'], required: ['tools'], enter: (given) => compensateRun(store, 'r1', given) },
  ),
  door<RecoverOptions>(
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
      enter: (given) => recoverRuns(given),
    },
  ),
  door<ResumeOptions>(
    'the options of resumeToolLoop',
    { scope, answeredBy: 'clerk', model: 'm' },
    {
      protecting: ['scope'],
      open: ['answeredBy'],
      enter: (given) => resumeToolLoop(config, suspended, [], given),
    },
  ),
  door<CallScope>('the scope of runToolLoop', scope, {
    ...ofScope,
    enter: (given) => runToolLoop(config, [], given),
  }),
  door<CallScope>('the scope of resumeToolLoop', scope, {
    ...ofScope,
    enter: (given) => resumeToolLoop(config, suspended, [], given),
  }),
  door<LoopGuardOptions>(
    'loopGuard',
    { tellAt: 2, endAt: 4 },
    { path: 'loopGuard.', enter: (loopGuard) => runToolLoop({ ...config, loopGuard }, []) },
  ),
  door<CompletionModel>(
    'complete',
    { provider, model: 'm', llmOptions: {}, signal, telemetry: openTelemetry() },
    { required: ['provider', 'model'], enter: (given) => complete(given, { messages: [] }) },
  ),
  door<CompletionRequest>(
    'the request of complete',
    { messages: [], systemPrompt: '', tools: [] },
    { required: ['messages'], enter: (given) => complete({ provider, model: 'm' }, given) },
  ),
  door<ConversationConfig>('Conversation', conversation, {
    ...ofConversation,
    enter: (given) => new Conversation(given),
  }),
  door<ConversationConfig>('Conversation.restore', conversation, {
    ...ofConversation,
    enter: (given) => Conversation.restore(given, {} as never),
  }),
  door<CallScope>('the scope of a Conversation', scope, {
    ...ofScope,
    path: 'scope.',
    enter: (given) => new Conversation({ provider, model: 'm', scope: given }),
  }),
  door<TurnOptions>('Conversation.prompt', turn, {
    protecting: ['scope'],
    enter: (given) => new Conversation({ provider, model: 'm' }).prompt('Hi', given),
  }),
  door<AnswerOptions>('Conversation.answer', answer, {
    protecting: ['scope'],
    open: ['answeredBy'],
    enter: (given) => new Conversation({ provider, model: 'm' }).answer([], given),
  }),
  door<IdleOptions>(
    'Conversation.idle',
    { tasks: true },
    { enter: (given) => new Conversation({ provider, model: 'm' }).idle(given) },
  ),
];

export const TOOL_DOORS: readonly Door[] = [
  door<ToolRegistryOptions>('ToolRegistry', registryOptions, {
    protecting: ['redact', 'describeError', 'policy', 'hooks', 'store'],
    enter: (given) => new ToolRegistry(given),
  }),
  door<NameFilter>(
    'ToolRegistry.view',
    { allow: ['a'], deny: ['b'] },
    { protecting: ['allow', 'deny'], enter: (given) => tools.view(given) },
  ),
  door<DiscoverOptions>(
    'discoverTools',
    { toolsets: [Shop], container: { resolve: () => new Shop() as never }, strict: true, logger: console },
    { open: ['container'], enter: (given) => discoverTools(given) },
  ),
  door<TaskQueueOptions>('TaskQueue', { maxRunning: 2 }, { enter: (given) => new TaskQueue(given) }),
  door<TextToolsOptions>(
    'withTextTools',
    { instructions: () => '' },
    { enter: (given) => withTextTools(provider, given) },
  ),
  door<ToolCallParserOptions>(
    'ToolCallParser',
    { tools: ['a'] },
    { enter: (given) => new ToolCallParser(given) },
  ),
  door<CurrentTimeOptions>(
    'createCurrentTimeTool',
    { now: () => new Date() },
    { enter: (given) => createCurrentTimeTool(given) },
  ),
  door<ToolHarnessOptions>(
    'toolHarness',
    { overrides: [], data: {} },
    { enter: (given) => toolHarness(Shop, given) },
  ),
];

export const OUTER_DOORS: readonly Door[] = [
  door<OpenAIProviderOptions>(
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
    { open: ['fetchOptions'], enter: (given) => new OpenAIProvider(given) },
  ),
  door<OpenTelemetryOptions>(
    'openTelemetry',
    { content: { arguments: true }, tracerProvider: trace, meterProvider: metrics },
    { enter: (given) => openTelemetry(given) },
  ),
  door<FromAiSdkOptions>(
    'fromAiSdk',
    {
      ...{ maxRetries: 0, providerTools: {}, strict: 'auto', responseFormat: true, toolReferences: true },
      ...{ itemKey: 'k', logger: console },
    },
    { enter: (given) => fromAiSdk(languageModel, given) },
  ),
  door<AiSdkModelOptions>(
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
      enter: (given) => fromAiSdk(languageModel).chat({ model: 'm', messages: [], options: given as never }),
    },
  ),
  door<AiSdkToolsOptions>(
    'toAiSdkTools',
    { policy: () => true, toolTimeoutMs: 5, onAsyncResult: () => {}, approvals: 'response' },
    { protecting: ['policy', 'approvals'], enter: (given) => toAiSdkTools(tools, {}, given) },
  ),
  door<{ readonly year?: number }>(
    'OfflineProvider',
    { year: 2026 },
    { enter: (given) => new OfflineProvider(given) },
  ),
  door<ScriptedReply>('a reply of ScriptedProvider', scripted, {
    open: ['content', 'finishReason', 'usage', 'attachments'],
    enter: (given) => new ScriptedProvider([given]),
  }),
  door<RandomFaults>(
    'the plan of faultyFetch',
    { seed: 1, rate: 0.5, faults: [{ kind: 'reset' }] },
    { required: ['seed', 'rate', 'faults'], enter: (given) => faultyFetch(fetch, given) },
  ),
  door<Required<RecordedFetchOptions>>(
    'recordedFetch',
    { file: import.meta.filename, mode: 'replay', fetch, redact: (text) => text },
    { required: ['file'], enter: (given) => recordedFetch(given) },
  ),
  door<Required<ProviderConformanceOptions>>(
    'providerConformance',
    { name: 'MyProvider', backend: () => httpBackend(served), without: ['files'], timeoutMs: 5 },
    { required: ['name', 'backend'], enter: (given) => providerConformance(given) },
  ),
  door<Required<HttpBackendOptions>>('httpBackend', served, {
    required: ['create', 'encode'],
    enter: async (given) => (await httpBackend(given)).close?.(),
  }),
  door<Omit<Required<ToolSurfaceOptions>, 'surface'>>(
    'expectToolSurface',
    { file: import.meta.filename, update: false, allow: [] },
    { required: ['file'], enter: (given) => expectToolSurface(tools, given) },
  ),
  door<MemoryRunStoreOptions>(
    'MemoryRunStore',
    { now: Date.now },
    { enter: (given) => new MemoryRunStore(given) },
  ),
  door<SqliteRunStoreOptions>(
    'SqliteRunStore',
    { path: ':memory:', busyTimeoutMs: 5, now: Date.now },
    { required: ['path'], enter: (given) => new SqliteRunStore(given).close() },
  ),
  door<SchedulesOptions>(
    'Schedules',
    { store: new MemoryRunStore(), maxSchedules: 5, minIntervalMs: 60_000, timeZone: 'Europe/Vienna' },
    { required: ['store'], enter: (given) => new Schedules(given) },
  ),
  door<NewSchedule>(
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
      enter: (given) => new Schedules({ store: new MemoryRunStore() }).add(given),
    },
  ),
  door<Omit<AgentOptions, 'configFile'>>('createAgent', agentOptions, {
    protecting: [...withEngine.protecting, 'permissions', 'folderConfigFile'],
    required: ['provider', 'model'],
    enter: async (given) => (await createAgent(given)).close(),
  }),
  door<RunJobsOptions>(
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
      enter: async (given) => (await runJobs(given)).close(),
    },
  ),
  door<BullmqEngineOptions>(
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
    { required: ['connection'], open: ['connection'], enter: (given) => bullmqEngine(given) },
  ),
  door<PgBossEngineOptions>(
    'pgBossEngine',
    {
      connection: 'postgres://127.0.0.1:1/none',
      schema: 'pgboss',
      queue: 'jobs',
      heartbeatSeconds: 10,
      transactional: true,
      logger: console,
    },
    { required: ['connection'], enter: (given) => pgBossEngine(given) },
  ),
  door<JobEngineBackend>(
    'jobEngineConformance',
    {
      open: () => new MemoryJobEngine(),
      startWorker: async () => ({ kill: async () => {} }),
      patienceMs: 1000,
    },
    { required: ['open'], enter: (given) => jobEngineConformance(given) },
  ),
  door<Omit<PostgresOptions, 'connectionString'>>(
    'PostgresRunStore with a pool',
    {
      pool: { query: fails, connect: fails },
      ...{ schema: 'shop', statementTimeoutMs: 5_000, reconnectMs: 0 },
    },
    { required: ['pool'], enter: (given) => new PostgresRunStore(given) },
  ),
  door<Omit<PostgresConversationStoreOptions, 'pool'>>(
    'PostgresConversationStore',
    {
      connectionString: 'postgres://app@127.0.0.1/shop',
      ...{ schema: 'shop', statementTimeoutMs: 5_000, reconnectMs: 0, expiresAfterMs: 1_000 },
    },
    { required: ['connectionString'], enter: (given) => new PostgresConversationStore(given) },
  ),
  door<Pick<PostgresOptions, 'connectionString'>>(
    'PostgresRunStore with a connection string',
    { connectionString: 'postgres://app@127.0.0.1/shop' },
    { required: ['connectionString'], enter: (given) => new PostgresRunStore(given) },
  ),
  door<RunStoreConformanceOptions>(
    'runStoreConformance',
    { name: 'MyRunStore', open: () => ({ store, advance: () => {} }), checkpoints: true, results: true },
    { required: ['name', 'open'], enter: (given) => runStoreConformance(given) },
  ),
  door<AssistantHandlerOptions>(
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
      enter: (given) => createAssistantHandler(given),
    },
  ),
  door<CorsOptions>(
    'cors of createAssistantHandler',
    { origins: '*' },
    {
      path: 'cors.',
      required: ['origins'],
      enter: (cors) => createAssistantHandler({ provider, model: 'm', cors }),
    },
  ),
  door<NonNullable<ConstructorParameters<typeof MemoryConversationStore>[0]>>(
    'MemoryConversationStore',
    { maxConversations: 2, expiresAfterMs: 1000, now: Date.now },
    { enter: (given) => new MemoryConversationStore(given) },
  ),
  door<SqliteConversationStoreOptions>(
    'SqliteConversationStore',
    { path: ':memory:', maxConversations: 2, expiresAfterMs: 1000, now: Date.now },
    { required: ['path'], enter: (given) => new SqliteConversationStore(given).close() },
  ),
  door<SatelliteClientOptions>(
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
    { required: ['url', 'tools'], enter: (given) => new SatelliteClient(given) },
  ),
  door<SatelliteSendOptions>(
    'SatelliteClient.send',
    { ...satelliteRun, conversationId: 'c1' },
    { enter: (given) => new SatelliteClient({ ...clientOptions, maxRetries: 0 }).send('Hi', given) },
  ),
  door<SatelliteRunOptions>('SatelliteClient.resume', satelliteRun, {
    enter: (given) => new SatelliteClient({ ...clientOptions, maxRetries: 0 }).resume('c1', given),
  }),
  door<LoggerOptions>(
    'createLogger',
    { level: 'silent', json: true, file: '/dev/null', stream: process.stderr },
    { enter: (given) => createLogger(given).close() },
  ),
  door<McpServerOptions>(
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
      enter: (given) => createMcpServer(tools, given),
    },
  ),
  door<McpSessionOptions>(
    'sessions of createMcpServer',
    { idleMs: 100, max: 2, maxPerPrincipal: 2, replay: 2 },
    { path: 'sessions.', enter: (sessions) => createMcpServer(tools, { sessions }) },
  ),
  door<McpAddress>(
    'connectMcp',
    { url: 'https://shop.example.com/mcp', headers: { 'x-team': 'shop' }, auth: mcpAuth },
    { required: ['url'], enter: connectMcp },
  ),
  door<McpProgram>(
    'connectMcp, a program',
    { command: 'npx', args: ['shop'], env: { SHOP: 'corner' }, cwd: '.' },
    { required: ['command'], enter: connectMcp },
  ),
  door<McpAuth>('auth of connectMcp', mcpAuth, {
    path: 'auth.',
    // A client secret needs its client id.
    protecting: ['issuer', 'account', 'clientId'],
    enter: (auth) => connectMcp({ url: 'https://shop.example.com/mcp', auth }),
  }),
  door<McpTaskOptions>(
    'tasks of createMcpServer',
    { store: new MemoryRunStore(), required: ['import_*'], leaseMs: 1_000 },
    {
      path: 'tasks.',
      protecting: ['required'],
      required: ['store'],
      enter: (tasks) => createMcpServer(new ToolRegistry(), { tasks }),
    },
  ),
  door<McpToolsOptions>('mcpTools', mcpToolsOptions, {
    protecting: ['allow', 'deny', 'approve'],
    enter: (given) => mcpTools(connect, given),
  }),
  door<McpToolsOptions>('followMcpTools', mcpToolsOptions, {
    protecting: ['allow', 'deny', 'approve'],
    enter: (given) => followMcpTools(new ToolRegistry(), connect, given),
  }),
];

export const NEST_DOORS: readonly Door[] = [
  door<ToolwrightModuleOptions>('ToolwrightModule.forRoot', moduleOptions, {
    protecting: ofModule,
    enter: (given) => createApplication(ToolwrightModule.forRoot(given)),
  }),
  door<ToolwrightModuleOptions>('the options from a factory of ToolwrightModule', moduleOptions, {
    protecting: ofModule,
    enter: (given) => createApplication(ToolwrightModule.forRootAsync({ useFactory: () => given })),
  }),
  door<Pick<ToolwrightModuleAsyncOptions, 'imports' | 'useFactory' | 'inject'>>(
    'ToolwrightModule.forRootAsync',
    { imports: [], useFactory: () => ({}), inject: [] },
    { required: ['useFactory'], enter: (given) => ToolwrightModule.forRootAsync(given) },
  ),
];

const generation: Required<GenerateProjectOptions> = {
  project: 'nowhere/tsconfig.json',
  out: 'nowhere.txt',
  importEnding: 'js',
  strict: true,
};

const PLUGINS = { vite, rollup, rolldown, esbuild, webpack, rspack };

export const PLUGIN_DOORS: readonly Door[] = [
  ...Object.entries(PLUGINS).map(([name, plugin]) =>
    door<GenerateProjectOptions>(name, generation, { enter: (given) => plugin(given) }),
  ),
  door<GenerateProjectOptions>('before', generation, { enter: (given) => before(given) }),
  door<GenerateProjectOptions>('ReadonlyVisitor', generation, {
    enter: (given) => new ReadonlyVisitor(given),
  }),
];
