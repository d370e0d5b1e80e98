import type { ClassType } from '../../core/contract/declaration.js';
import { JOB_ENGINE, type JobEngine } from '../../core/contract/job-engine.js';
import type { LLMProvider } from '../../core/contract/llm-provider.js';
import type { InstanceResolver } from '../../core/contract/ports.js';
import type { Telemetry } from '../../core/contract/telemetry.js';
import { omitFields } from '../../core/kernel/json.js';
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
import type { NameFilter, RegisteredTool, ToolRegistry } from '../../run/call/tool-registry.js';
import {
  type ConversationsConfig,
  type ConversationsOptions,
  type ConversationsStore,
  TAKING_RULES,
  TURN_RULES,
} from '../../run/conversation/conversations-options.js';
import { LOOP_ALIASES } from '../../run/loop/options.js';
import type { ConnectedMcpClient, McpConnectOptions } from '../../surfaces/mcp/client/connect-options.js';
import type { AgentsOptions, NamedAgent } from '../agents/index.js';
import type { OpenApiOptions } from '../openapi/index.js';
import type { Permissions, PermissionsOptions } from '../permissions/index.js';
import type { SandboxShellOptions } from '../sandbox/index.js';
import type { SchedulesOptions } from '../schedule/index.js';
import type { LocalShellOptions } from '../shell/index.js';
import type { SkillToolsOptions } from '../skills/index.js';
import type { SearxngOptions, WebAccessOptions, WebSearch } from '../web/index.js';

/** Settings of the named toolboxes. Relative paths start at the agent's folder. */
export interface ToolboxSettings {
  /** `root`: default: the agent's folder. */
  readonly files: { readonly root?: string };
  /**
   * `folder`: default: the agent's folder. `sandbox`: further options of `sandboxShell`, which then runs the commands;
   * `'external'` if the process runs in a disposable container. Default in mode `auto`: `{}`; otherwise no sandbox.
   */
  readonly shell: Partial<Omit<LocalShellOptions, 'sandbox' | 'logger'>> & {
    readonly sandbox?: 'external' | Omit<SandboxShellOptions, keyof LocalShellOptions>;
  };
  readonly web: WebAccessOptions & { readonly search?: WebSearch | { readonly searxng: SearxngOptions } };
  readonly tasks: Readonly<Record<string, never>>;
  readonly skills: SkillToolsOptions;
  /** Schedules are stored in the agent's store; prompts arrive in the conversations of `agent.conversations()`. */
  readonly schedule: Omit<SchedulesOptions, 'store'>;
  /** Other agents by name. The agent's store records what counts towards `total`. */
  readonly agents: Omit<AgentsOptions, 'agents' | 'store'> & {
    readonly agents: Readonly<Record<string, OtherAgent>>;
  };
  /** `document`: OpenAPI 3.0 or 3.1, or the path of a JSON file with one. */
  readonly openapi: OpenApiOptions & { readonly document: unknown };
}

/** Another agent that the agent may ask. Default for provider and model: those of the agent. */
export interface OtherAgent extends Omit<NamedAgent, 'provider' | 'model' | 'tools'> {
  readonly provider?: LLMProvider | Named<ProviderSettings>;
  readonly model?: string;
  readonly toolboxes?: readonly Toolbox[];
}

/** A name, or an object with one name and its settings: `'files'`, `{ files: { root: '/srv/project' } }`. */
type Named<Settings> = { readonly [Name in keyof Settings]?: Settings[Name] } | keyof Settings;

/**
 * Tools of an agent: the name of a toolbox, with settings if it has any; a `@Toolset` class, which the container
 * creates, or an instance of one; a tool; a registry; or a list of these.
 */
export type Toolbox =
  | Named<ToolboxSettings>
  | ClassType
  | Exclude<RegisteredTool, () => unknown>
  | ToolRegistry
  | ToolsetInstance
  | readonly Toolbox[];

/** Any object except an object literal: there, a name that is not a toolbox's is a mistake. */
interface ToolsetInstance {
  readonly constructor: unknown;
  /** Excludes strings: a string that is not a toolbox's name is a mistake. */
  readonly charAt?: never;
}

/** The `OpenAIProvider` options that a file can contain. The option type itself needs the package `openai`. */
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

/** Settings of the named providers. */
export interface ProviderSettings {
  readonly openai: OpenAISettings;
  readonly offline: Readonly<Record<string, never>>;
}

/** Settings of the named stores. */
export interface StoreSettings {
  readonly memory: Readonly<Record<string, never>>;
  readonly sqlite: SqliteRunStoreOptions;
  readonly postgres: PostgresOptions;
}

/** Which contents `openTelemetry` records; default: none. */
export interface TelemetrySettings {
  readonly content?:
    | boolean
    | { readonly arguments?: boolean; readonly results?: boolean; readonly messages?: boolean };
}

/** A connected `Client` of the MCP SDK, version 2, or a function that connects one. SDK types need its package. */
export type AgentMcpClient = ConnectedMcpClient | (() => ConnectedMcpClient | Promise<ConnectedMcpClient>);

/** An MCP server: a program to start, by default in the agent's folder, or an address. */
export type AgentMcpServer = McpConnectOptions & AgentMcpTools;

/** Which tools of an MCP server an agent has: all, or by the server's names, with `*` for any characters. */
export interface AgentMcpTools extends NameFilter {
  /** Milliseconds for one call. Default: two minutes. */
  readonly timeoutMs?: number;
  /** The server's names of tools that run in the background. Default: none. */
  readonly background?: readonly string[];
  /**
   * Whether the agent gets a tool, asked again when its definition has changed: `fingerprint` is a digest of all that a
   * model reads of it. Default: it gets all.
   */
  approve?(candidate: AgentMcpCandidate): boolean | Promise<boolean>;
}

/** A tool as its server currently defines it. */
export interface AgentMcpCandidate {
  readonly name: string;
  readonly definition: Readonly<Record<string, unknown>>;
  readonly fingerprint: string;
  /** Absent for a new tool. */
  readonly previous?: Omit<AgentMcpCandidate, 'name' | 'previous'>;
}

/** Options for the conversations in the agent's store. */
export type AgentConversations = Pick<ConversationsOptions, keyof typeof TAKING_RULES>;

/** Options of an agent: those of its runs, and of the parts around them. */
export interface AgentOptions extends Omit<ConversationsConfig, 'provider' | 'tools' | 'telemetry'> {
  /** The provider of the model: an object, or `'openai'`, `{ openai: { … } }`, `'offline'`. */
  readonly provider: LLMProvider | Named<ProviderSettings>;
  /** The folder of toolboxes; default: the working directory of the process. */
  readonly folder?: string;
  /** Where the agent's tools come from. Two tools of the same name are an error. */
  readonly toolboxes?: readonly Toolbox[];
  /** Folders of skills; each skill is a tool. */
  readonly skills?: SkillToolsOptions['folder'];
  /** MCP servers. The keys are prefixes for the names of their tools. */
  readonly mcp?: Readonly<Record<string, AgentMcpClient | AgentMcpServer>>;
  /** What calls may do; default: `{ mode: 'ask' }`. */
  readonly permissions?: Permissions | PermissionsOptions;
  /**
   * The store for runs and conversations, or `{ sqlite: { path } }`, `{ postgres: { … } }`. Default: runs are not
   * stored, and `conversations` are in memory.
   */
  readonly store?: ConversationsStore | Named<StoreSettings>;
  readonly engine?: JobEngine;
  /** Records runs and calls: `openTelemetry()`, or `'opentelemetry'`, `{ opentelemetry: { … } }`. */
  readonly telemetry?: Telemetry | Named<{ readonly opentelemetry: TelemetrySettings }>;
  /** Creates the `@Toolset` classes; default: tsyringe's global container. */
  readonly container?: InstanceResolver;
  /** Options for the conversations in the store. */
  readonly conversations?: AgentConversations;
  /** A JSON file with any of these options. Options in code take precedence, name by name. */
  readonly configFile?: string;
  /**
   * A file of the same form that comes with the folder. It is not trusted, because anyone may have written it: its
   * permissions only restrict, and its other options are ignored. It must be a regular file of at most 1 MiB, and no
   * link on its path may lead out of the folder.
   */
  readonly folderConfigFile?: string;
}

/** Options of an agent if a configuration file names its provider or model. */
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

const RUN_RULES = omitFields(TURN_RULES, 'tools', 'provider', 'telemetry');

/** An example of a store, for the fixes of faults. */
export const SQLITE = "{ sqlite: { path: '/var/lib/my-agent/agent.sqlite' } }";

/** Names of parts other than toolboxes. */
const NAMES = {
  provider: ['openai', 'offline'],
  store: ['memory', 'sqlite', 'postgres'],
  telemetry: ['opentelemetry'],
} as const;

/** Accepts any string: an unknown name is reported when it is looked up. */
function named(names: readonly string[], fix: string): OptionRule {
  return { accepts: Boolean, fix, schema: namedSchema(names) };
}

/** A name, or an object with one name and its settings. */
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

/** Each server is checked when it is connected. */
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

/** Rules of the options; each part checks its own settings. */
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
    store: named(NAMES.store, `${SQLITE}, or a store`),
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
