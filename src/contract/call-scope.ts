import {
  ANYTHING,
  FUNCTION,
  LIST,
  protecting,
  RECORD,
  SIGNAL,
  TEXT,
  withMethods,
} from '../kernel/option-rules.js';
import { objectOf, optionTable, type RulesOf } from '../kernel/options.js';
import type { InstanceResolver } from './instance-resolver.js';
import type { LogFields, LogLevel } from './logger.js';
import type { Message } from './message.js';
import type { ProgressUpdate, ToolContextData } from './tool-context.js';

/** Hears of news from inside running calls, and of which call they are. */
export type UpdateListener = (
  update: ProgressUpdate,
  call: { readonly callId: string; readonly tool: string },
) => void;

/** Hears of what a tool logs through `context.logger`; the logger gets it as well. */
export type LogListener = (
  entry: { readonly level: LogLevel; readonly message: string; readonly fields?: LogFields },
  call: { readonly callId: string; readonly tool: string },
) => void;

/** The surroundings of a call or a run: who asks, where, and with what. */
export interface CallScope {
  readonly channel?: string;
  readonly chatId?: string;
  readonly conversationId?: string;
  /** Id of the call; the framework numbers calls that come without one. */
  readonly callId?: string;
  /**
   * On whose behalf a run takes place: any JSON, such as `{ user: 'u1', tenant: 't1' }`. A suspended run keeps it,
   * and goes on only where the scope names the same owner again. It is compared, never handed to tools.
   */
  readonly owner?: unknown;
  readonly messages?: readonly Message[];
  readonly signal?: AbortSignal;
  readonly onUpdate?: UpdateListener;
  readonly onLog?: LogListener;
  /** The application's own data; handed on as it is, never serialised. */
  readonly data?: ToolContextData;
  /** Resolves what scoped tools and `context.resolve` ask for, e.g. the container of a request. */
  readonly container?: Pick<InstanceResolver, 'resolve'>;
}

/** What each part of a scope may be. */
export const SCOPE_RULES: RulesOf<CallScope> = {
  channel: TEXT,
  chatId: TEXT,
  conversationId: TEXT,
  callId: TEXT,
  owner: protecting({ ...ANYTHING, fix: "JSON that says who it is: { user: 'u1' }" }),
  messages: LIST,
  signal: SIGNAL,
  onUpdate: FUNCTION,
  onLog: FUNCTION,
  data: { accepts: RECORD.accepts, fix: 'an object: { userId }' },
  container: withMethods(['resolve'], 'an object with resolve(token)'),
};

export const SCOPE = optionTable<CallScope>('the scope', SCOPE_RULES, {
  user: 'data: { user }',
  userId: 'data: { userId }',
  tenantId: 'data: { tenantId }',
  context: 'data: { … }',
});

/** A scope among other options. */
export const SCOPE_OPTION = objectOf<CallScope>(SCOPE_RULES, { fix: '{ data: { userId } }' });
