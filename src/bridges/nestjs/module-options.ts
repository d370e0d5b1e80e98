import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common';
import type { CallScope } from '../../contract/call-scope.js';
import { MODEL, PROVIDER } from '../../contract/llm-provider.js';
import type { RunState } from '../../contract/run-state.js';
import type { ToolContextData } from '../../contract/tool-context.js';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { BOOLEAN, FUNCTION, LIST, protecting } from '../../kernel/option-rules.js';
import type { RulesOf } from '../../kernel/options.js';
import { LOOP_RULES, type ToolLoopConfig } from '../../loop/loop-config.js';
import { REGISTRY_RULES, type ToolRegistryOptions } from '../../registry/tool-registry-options.js';
import type { RegisteredTool } from '../../registry/tool-table.js';

/**
 * Options of `ToolwrightModule`: those of the registry and of the loop. `provider` and `model` may be left out
 * where the application runs no loop of its own, or gives them with each run.
 */
export interface ToolwrightModuleOptions
  extends ToolRegistryOptions,
    Partial<Omit<ToolLoopConfig, 'tools' | 'signal' | keyof ToolRegistryOptions>> {
  /** A generated description that no longer fits its class is a mistake; default: a warning. */
  readonly strict?: boolean;
  /** Tools beside those of the providers. */
  readonly tools?: readonly RegisteredTool[];
  /** What the tools of a run find in `context.data`, from the request that started it. */
  readonly data?: (request: never) => ToolContextData;
  /** On whose behalf a request's runs take place: any JSON. A run goes on for its own owner only. */
  readonly owner?: (request: never) => unknown;
  /** Whether a request sees a tool, and may call it: only where this says `true`. */
  readonly visible?: (request: never, tool: ToolDefinition) => boolean | Promise<boolean>;
  /** Whether a request may answer a run of another owner: only where this says `true`. Needs `owner` and `scopeOf`. */
  readonly mayAnswer?: (request: never, run: OwnedRun) => boolean | Promise<boolean>;
  /** In what scope a run goes on that somebody else answered: its owner's, with a request that stands for the owner. */
  readonly scopeOf?: (owner: never) => OwnerScope | Promise<OwnerScope>;
  /**
   * `true`: the model is told the message of every error. Default: of an `HttpException` below 500, of
   * `RetryToolCall` and of the framework's own errors; of any other only a reference that stands in the log beside it.
   */
  readonly exposeErrors?: boolean;
  /** Milliseconds that a shutdown waits for running calls before it aborts them; default 10,000. */
  readonly shutdownTimeoutMs?: number;
}

const { tools: _1, signal: _2, provider: _3, model: _4, ...LOOP } = LOOP_RULES;

/** What each of them may be. */
export const MODULE_RULES: RulesOf<ToolwrightModuleOptions> = {
  ...REGISTRY_RULES,
  ...LOOP,
  provider: PROVIDER,
  model: MODEL,
  strict: BOOLEAN,
  tools: { ...LIST, fix: '[calculateTool, …]' },
  data: { ...FUNCTION, fix: '(request) => ({ userId: request.user.id })' },
  owner: protecting({ ...FUNCTION, fix: '(request) => ({ user: request.user.id })' }),
  visible: protecting({ ...FUNCTION, fix: '(request, tool) => true or false' }),
  mayAnswer: protecting({ ...FUNCTION, fix: '(request, run) => true or false' }),
  scopeOf: protecting({ ...FUNCTION, fix: '(owner) => ({ request: { user: owner.user } })' }),
  exposeErrors: BOOLEAN,
  shutdownTimeoutMs: {
    accepts: (value) => typeof value === 'number' && value >= 0,
    fix: 'a number, 0 or more, or Infinity',
  },
};

/** A suspended run, as far as it matters who may answer it: whose it is, and what it waits for. */
export type OwnedRun = Pick<RunState, 'owner' | 'pending'> & Partial<RunState>;

/** The scope of an owner whose run somebody else has answered. */
export interface OwnerScope extends Omit<CallScope, 'container'> {
  /** What guards and request-scoped providers find: `{ user }`, as after the owner's login. Default: no request. */
  readonly request?: object;
}

/** Makes the options: a provider for `useClass` and `useExisting`. */
export interface ToolwrightOptionsFactory {
  createToolwrightOptions(): ToolwrightModuleOptions | Promise<ToolwrightModuleOptions>;
}

/** Options that come from other providers: exactly one of `useFactory`, `useClass`, `useExisting`. */
export interface ToolwrightModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  // biome-ignore lint/suspicious/noExplicitAny: a factory names the types of what it injects
  readonly useFactory?: (...injected: any[]) => ToolwrightModuleOptions | Promise<ToolwrightModuleOptions>;
  readonly inject?: (InjectionToken | OptionalFactoryDependency)[];
  readonly useClass?: Type<ToolwrightOptionsFactory>;
  readonly useExisting?: Type<ToolwrightOptionsFactory>;
}

/** Token of the options as they were given, or as a factory made them. */
export const GIVEN_OPTIONS = Symbol('toolwright.given-options');

/** Token of the checked options of an application's `ToolwrightModule`. */
export const MODULE_OPTIONS = Symbol('toolwright.module-options');
