import { resolve } from 'node:path';
import { type LLMProvider, PROVIDER } from '../../core/contract/llm-provider.js';
import { TELEMETRY, type Telemetry } from '../../core/contract/telemetry.js';
import { InvalidOptionsError } from '../../core/errors/author-fault.js';
import { isPlainObject, isRecord } from '../../core/kernel/json.js';
import { nearestNames } from '../../core/kernel/nearest-name.js';
import type { OptionRule } from '../../core/kernel/options.js';
import { type ConversationsStore, keepsConversations } from '../../run/conversation/conversations-options.js';
import { type AgentOptions, NAMES, type ProviderSettings, type StoreSettings } from './agent-options.js';

/** A store, and a function that closes it if the agent opened it. */
export interface AgentStore {
  readonly store: ConversationsStore;
  readonly close?: () => void | Promise<void>;
}

export async function openProvider(given: AgentOptions['provider']): Promise<LLMProvider> {
  const named = readNamed(given, { names: NAMES.provider, of: 'provider' });
  if (named === undefined)
    return checked(given, { ...PROVIDER, fix: "new OpenAIProvider(), 'openai' or 'offline'" }, 'a provider');
  if ((named.name as keyof ProviderSettings) === 'openai') {
    const { OpenAIProvider } = await import('../../models/openai/index.js');
    return new OpenAIProvider(named.settings);
  }
  const { OfflineProvider } = await import('../../models/offline/index.js');
  return new OfflineProvider();
}

export async function openTelemetryOf(given: NonNullable<AgentOptions['telemetry']>): Promise<Telemetry> {
  const named = readNamed(given, { names: NAMES.telemetry, of: 'telemetry' });
  if (named === undefined) return checked(given, TELEMETRY, 'telemetry');
  const { openTelemetry } = await import('../../observe/opentelemetry/index.js');
  return openTelemetry(named.settings);
}

/** Returns the given store or opens the named one; paths start at `base`. */
export async function openAgentStore(
  given: NonNullable<AgentOptions['store']>,
  base: string,
): Promise<AgentStore> {
  const named = readNamed(given, { names: NAMES.store, of: 'store' });
  if (named === undefined) return { store: checked(given, STORE, 'a store') };
  switch (named.name as keyof StoreSettings) {
    case 'sqlite': {
      const { SqliteRunStore } = await import('../../durable/stores/index.js');
      const { path, ...settings } = named.settings;
      const isPath = typeof path === 'string' && path !== '' && path !== ':memory:';
      const store = new SqliteRunStore({
        ...settings,
        path: (isPath ? resolve(base, path) : path) as string,
      });
      return { store, close: () => store.close() };
    }
    case 'postgres': {
      const { PostgresRunStore } = await import('../../durable/postgres/index.js');
      const store = new PostgresRunStore(named.settings);
      return { store, close: () => store.close() };
    }
    case 'memory': {
      const { MemoryRunStore } = await import('../../durable/stores/index.js');
      return { store: new MemoryRunStore(named.settings) };
    }
  }
}

const STORE: OptionRule = {
  accepts: keepsConversations,
  fix: "{ sqlite: { path: 'agent.sqlite' } }, or a store that keeps conversations",
};

function checked<Part>(given: unknown, { accepts, fix }: OptionRule, what: string): Part {
  if (accepts(given)) return given as Part;
  throw new InvalidOptionsError([{ where: what, option: '', problem: `what is given is not ${what}`, fix }]);
}

interface NamedPart {
  readonly name: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

/**
 * The part that a string or an object with one key names; `undefined` if the value is the part itself.
 *
 * @throws InvalidOptionsError (521) for an unknown name.
 */
export function readNamed(
  given: unknown,
  { names, of }: { readonly names: readonly string[]; readonly of: string },
): NamedPart | undefined {
  const wrong = (problem: string, fix: string) =>
    new InvalidOptionsError([{ where: of, option: '', problem, fix }]);
  if (typeof given !== 'string') {
    if (!isRecord(given) || !isPlainObject(given)) return undefined;
    // An object with methods is a part itself, even if it is a plain object.
    if (Object.values(given).some((value) => typeof value === 'function')) return undefined;
  }
  const [entry, second] = typeof given === 'string' ? [[given, {}] as const] : Object.entries(given);
  if (entry === undefined || second !== undefined) {
    const found = entry === undefined ? 'none' : 'several';
    throw wrong(`${of} is to be one name with its settings, and has ${found}`, `{ ${names[0]}: { … } }`);
  }
  const [name, settings] = entry;
  if (!isRecord(settings)) throw wrong(`the settings of '${name}' are no object`, `{ ${name}: { … } }`);
  if (names.includes(name)) return { name, settings };
  const near = nearestNames(name, names).map((other) => `'${other}'`);
  const meant = near.length > 0 ? ` (did you mean ${near.join(' or ')}?)` : '';
  const own = of === 'toolbox' ? 'tools' : `a ${of}`;
  const known = names.map((other) => `'${other}'`).join(', ');
  throw wrong(`there is no ${of} '${name}'${meant}`, `one of ${known}, or ${own} of your own`);
}
