import type { LLMProvider } from '../contract/llm-provider.js';
import type { Logger } from '../contract/logger.js';
import type { RunStore } from '../contract/run-store.js';
import type { AsyncCallback } from '../contract/tool.js';
import type { ToolPolicy } from '../contract/tool-policy.js';
import type { TaskQueue } from '../invocation/task-queue.js';
import type { ToolRegistry } from '../registry/tool-registry.js';
import type { RegisteredTool } from '../registry/tool-table.js';

import type { Detector } from './detect-calls.js';
import type { LoopGuardOptions } from './loop-guard.js';

/** What a run needs. */
export interface ToolLoopConfig {
  readonly provider: LLMProvider;
  readonly model: string;
  /** A registry, or tools to put into one; none: the model is offered no tools. */
  readonly tools?: ToolRegistry | readonly RegisteredTool[];
  /** Where calls are looked for beside the reply's own; default `native`: nowhere. */
  readonly detector?: Detector;
  /** Requests to the model at most; default 20, under `withTextTools` 5. `0` makes none. */
  readonly maxIterations?: number;
  /** Passed to the provider as they are: `max_tokens`, `temperature`, … */
  readonly llmOptions?: Readonly<Record<string, unknown>>;
  /** How often the model may correct itself, per tool and run; default 2. */
  readonly maxRetries?: number;
  /** Calls of one message that run at the same time; default: all. */
  readonly maxConcurrency?: number;
  /** Milliseconds for tools that set no `timeoutMs`; default: the registry's, otherwise 120,000. */
  readonly toolTimeoutMs?: number;
  /** At the limit: end with status `limit`, throw, or ask once more with tools switched off. */
  readonly onLimit?: 'return' | 'throw' | 'answer';
  /** Finds a model that goes in circles; on by default, `false` switches it off. */
  readonly loopGuard?: LoopGuardOptions | false;
  /** Decides about every call of this run, beside the registry's policy: both must allow it. */
  readonly policy?: ToolPolicy;
  /** Characters of a result that the model sees at most; default: the registry's. */
  readonly maxResultChars?: number;
  /** Keeps the run where it is suspended, for `resumeStoredRun`. */
  readonly store?: RunStore;
  /** Signs the states of suspended runs, and refuses states without that signature. */
  readonly stateSecret?: string;
  readonly signal?: AbortSignal;
  /** Default: the registry's. */
  readonly logger?: Logger;
  /** Hears of completions of work that tools started; with it, such tools answer at once. */
  readonly onAsyncResult?: AsyncCallback;
  /** What the work that tools start goes through; default: the registry's. */
  readonly tasks?: TaskQueue;
}
