import type { ClassType } from '../../core/contract/declaration.js';
import { JOB_ENGINE, type JobEngine } from '../../core/contract/job-engine.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import type { InstanceResolver } from '../../core/contract/ports.js';
import type { Telemetry } from '../../core/contract/telemetry.js';
import {
  either,
  FILLED_TEXT,
  LIST,
  listOf,
  type OptionRule,
  objectOf,
  optionTable,
  protecting,
  RECORD,
  required,
  withMethods,
} from '../../core/kernel/options.js';
import type { PostgresOptions } from '../../durable/postgres/index.js';
import type { SqliteRunStoreOptions } from '../../durable/stores/index.js';
import type { RegisteredTool } from '../../run/call/registration.js';
import type { ToolRegistry } from '../../run/call/tool-registry.js';
import {
  type ConversationsConfig,
  type ConversationsOptions,
  type ConversationsStore,
  TAKING_RULES,
  TURN_RULES,
} from '../../run/conversation/conversations-options.js';
import { LOOP_ALIASES } from '../../run/loop/options.js';
import type { AgentsOptions, NamedAgent } from '../agents/index.js';
import type { OpenApiOptions } from '../openapi/index.js';
import type { Permissions, PermissionsOptions } from '../permissions/index.js';
import type { SandboxShellOptions } from '../sandbox/index.js';
import type { SchedulesOptions } from '../schedule/index.js';
import type { LocalShellOptions } from '../shell/index.js';
import type { SkillToolsOptions } from '../skills/index.js';
import type { SearxngOptions, WebAccessOptions, WebSearch } from '../web/index.js';

/** The settings of the toolboxes that have a name. Relative paths begin at the agent's folder. */
export interface ToolboxSettings {
  /** `root`: default: the agent's folder. */
  readonly files: { readonly root?: string };
  /**
   * `folder`: default: the agent's folder. `sandbox`: what `sandboxShell` takes beside, which then runs the commands;
   * `'external'`: the process runs in a disposable container. In mode `auto` the default is `{}`, otherwise none.
   */
  readonly shell: Partial<Omit<LocalShellOptions, 'sandbox' | 'logger'>> & {
    readonly sandbox?: 'external' | Omit<SandboxShellOptions, keyof LocalShellOptions>;
  };
  readonly web: WebAccessOptions & { readonly search?: WebSearch | { readonly searxng: SearxngOptions } };
  readonly tasks: Readonly<Record<string, never>>;
  readonly skills: SkillToolsOptions;
  /** Kept in the agent's store; they arrive in the conversations of `agent.conversations()`. */
  readonly schedule: Omit<SchedulesOptions, 'store'>;
  /** Other agents by name; what `total` says is kept in the agent's store. */
  readonly agents: Omit<AgentsOptions, 'agents' | 'store'> & {
    readonly agents: Readonly<Record<string, OtherAgent>>;
  };
  /** `document`: OpenAPI 3.0 or 3.1, or the path of a JSON file with one. */
  readonly openapi: OpenApiOptions & { readonly document: unknown };
}

/** An agent that an agent may ask; without a provider or a model it has those of the agent. */
export interface OtherAgent extends Omit<NamedAgent, 'provider' | 'model' | 'tools'> {
  readonly provider?: LLMProvider | Named<ProviderSettings>;
  readonly model?: string;
  readonly toolboxes?: readonly Toolbox[];
}

/** A name, or an object of one name and its settings: `'files'`, `{ files: { root: '/srv/project' } }`. */
type Named<Settings> = { readonly [Name in keyof Settings]?: Settings[Name] } | keyof Settings;

/**
 * Tools of an agent: the name of a toolbox, with its settings where it has any; a `@Toolset` class, which the container
 * makes, or an instance of one; a tool; a registry; a list of these.
 */
export type Toolbox =
  | Named<ToolboxSettings>
  | ClassType
  | Exclude<RegisteredTool, () => unknown>
  | ToolRegistry
  | ToolsetInstance
  | readonly Toolbox[];

/** Any object but one that is written in its place: there a name that is no toolbox’s is a slip. */
interface ToolsetInstance {
  readonly constructor: unknown;
  /** Texts have it: a name that is no toolbox’s is none of these. */
  readonly charAt?: never;
}

/** The settings of `OpenAIProvider` that a file can say. Its own type needs the package `openai`. */
export interface OpenAISettings {
  readonly apiKey?: string;
  readonly baseURL?: string;
  readonly organization?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly maxRetries?: number;
  readonly api?: 'chat' | 'responses';
  readonly strict?: boolean | 'auto';
}

/** The settings of the providers that have a name. */
export interface ProviderSettings {
  readonly openai: OpenAISettings;
  readonly offline: Readonly<Record<string, never>>;
}

/** The settings of the stores that have a name. */
export interface StoreSettings {
  readonly memory: Readonly<Record<string, never>>;
  readonly sqlite: SqliteRunStoreOptions;
  readonly postgres: PostgresOptions;
}

/** What `openTelemetry` records of the contents: by default nothing. */
export interface TelemetrySettings {
  readonly content?:
    | boolean
    | { readonly arguments?: boolean; readonly results?: boolean; readonly messages?: boolean };
}

/** Identifies a connected `Client` of the MCP SDK, version 2, or connects one. Its own type needs that package. */
export type AgentMcpClient = ConnectedClient | (() => ConnectedClient | Promise<ConnectedClient>);

/** Where an MCP server is: a program to start, in the agent's folder if no other is named, or an address. */
export type AgentMcpServer =
  | {
      readonly command: string;
      readonly args?: readonly string[];
      /** Beside what a program needs to run. */
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
    }
  | { readonly url: string; readonly headers?: Readonly<Record<string, string>> };

interface ConnectedClient {
  getProtocolEra(): string | undefined;
  getServerCapabilities(): object | undefined;
  close(): Promise<void>;
}

/** How the conversations of an agent are taken that live in its store. */
export type AgentConversations = Pick<ConversationsOptions, keyof typeof TAKING_RULES>;

/** What an agent is made from: the options of its runs, and the parts around them. */
export interface AgentOptions extends Omit<ConversationsConfig, 'provider' | 'tools' | 'telemetry'> {
  /** Who is asked: a provider, or `'openai'`, `{ openai: { … } }`, `'offline'`. */
  readonly provider: LLMProvider | Named<ProviderSettings>;
  /** The folder that toolboxes work in where their settings name no other; default: that of the process. */
  readonly folder?: string;
  /** Their tools are those of the agent; two of the same name are a mistake. */
  readonly toolboxes?: readonly Toolbox[];
  /** Folders of skills, each a tool. */
  readonly skills?: SkillToolsOptions['folder'];
  /**
   * MCP servers: programs, addresses, connected clients, or functions that connect them. Their tools' names begin with
   * these names.
   */
  readonly mcp?: Readonly<Record<string, AgentMcpClient | AgentMcpServer>>;
  /** What calls may do, of whatever tool; default: `{ mode: 'ask' }`. */
  readonly permissions?: Permissions | PermissionsOptions;
  /**
   * Where runs and conversations are kept: a store, or `{ sqlite: { path } }`, `{ postgres: { … } }`. Default: runs are
   * not kept, and `conversations` in memory.
   */
  readonly store?: ConversationsStore | Named<StoreSettings>;
  readonly engine?: JobEngine;
  /** Records what goes on: `openTelemetry()`, or `'opentelemetry'`, `{ opentelemetry: { … } }`. */
  readonly telemetry?: Telemetry | Named<{ readonly opentelemetry: TelemetrySettings }>;
  /** Makes the `@Toolset` classes; default: tsyringe's global container. */
  readonly container?: InstanceResolver;
  /** How conversations in the store are taken. */
  readonly conversations?: AgentConversations;
  /** A JSON file with any of these options; those that are given beside it win, name by name. */
  readonly configFile?: string;
  /**
   * A file of the same form that the folder brings with it, if it is there. Nobody knows who wrote it: its permissions
   * make things stricter, and nothing else of it is heard. It is a regular file of at most 1 MiB, and no link leads
   * out of the folder on the way to it.
   */
  readonly folderConfigFile?: string;
}

/** What an agent is made from whose provider or model stands in its configuration file. */
export interface ConfiguredAgentOptions extends Partial<AgentOptions> {
  readonly configFile: string;
}

export const TOOLBOX_NAMES: readonly (keyof ToolboxSettings)[] = [
  'files',
  'shell',
  'web',
  'tasks',
  'schedule',
  'skills',
  'openapi',
  'agents',
];

const { tools: _1, provider: _2, telemetry: _3, ...RUN_RULES } = TURN_RULES;

/** Names of what has one, beside toolboxes. */
export const NAMES = {
  provider: ['openai', 'offline'],
  store: ['memory', 'sqlite', 'postgres'],
  telemetry: ['opentelemetry'],
} as const;

/** A name may be any string here: mistakes in it are reported where it is looked up. */
function named(names: readonly string[], fix: string): OptionRule {
  return { accepts: Boolean, fix, schema: namedSchema(names) };
}

/** A name, or an object of one name and its settings. */
function namedSchema(names: readonly string[]): Readonly<Record<string, unknown>> {
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'object' }]));
  const one = { type: 'object', properties, minProperties: 1, maxProperties: 1, additionalProperties: false };
  return { anyOf: [{ enum: names }, one] };
}

const TOOLBOX_LIST: OptionRule = {
  ...LIST,
  fix: "['files', 'shell', ShopTools]",
  schema: {
    type: 'array',
    items: { anyOf: [namedSchema(TOOLBOX_NAMES), { $ref: '#/properties/toolboxes' }] },
  },
};

/** What each server is, is checked where it is connected. */
const SERVERS: OptionRule = {
  ...RECORD,
  fix: "{ shop: { url: 'https://shop.example.com/mcp' } }",
  schema: {
    type: 'object',
    additionalProperties: {
      type: 'object',
      anyOf: [{ required: ['command'] }, { required: ['url'] }],
    },
  },
};
const FOLDERS = either(FILLED_TEXT, listOf(FILLED_TEXT, "['skills']"));

/** What each option may be; what is made of it says the rest. */
export const AGENT_OPTIONS = optionTable<AgentOptions>(
  'createAgent',
  {
    ...RUN_RULES,
    provider: required(named(NAMES.provider, "new OpenAIProvider(), or 'openai' or 'offline'")),
    folder: FILLED_TEXT,
    toolboxes: TOOLBOX_LIST,
    skills: FOLDERS,
    mcp: SERVERS,
    permissions: protecting({ ...RECORD, fix: "{ mode: 'ask', rules: […] }" }),
    store: named(NAMES.store, "{ sqlite: { path: 'agent.sqlite' } }, or a store"),
    engine: JOB_ENGINE,
    telemetry: named(NAMES.telemetry, "'opentelemetry', or openTelemetry()"),
    container: withMethods(['resolve'], 'an object with resolve(token)'),
    conversations: objectOf<AgentConversations>(TAKING_RULES, { fix: '{ takesTurns: false, … }' }),
    configFile: FILLED_TEXT,
    folderConfigFile: protecting(FILLED_TEXT),
  },
  {
    ...LOOP_ALIASES,
    tools: 'toolboxes: [tool, …]',
    toolsets: 'toolboxes: [ShopTools, …]',
    name: "agentName: '…'",
    cwd: 'folder: …',
    root: 'folder: …',
  },
);
