import type { CallScope, ToolPolicy } from '../contract/call.js';
import type { ToolResult } from '../contract/tool-result.js';
import type { AuthorFault } from '../errors/author-fault.js';
import { withMethods } from '../kernel/options.js';
import { makeCall } from './call-pipeline.js';
import type {
  CallEnvironment,
  CallRequest,
  CallStep,
  Invocation,
  RecordedEnvironment,
} from './invocation.js';

/** What watches a registry. */
export const WATCHER = withMethods(['aroundCall'], 'createInspector(registry)');

export const WATCHED: AuthorFault = {
  where: 'ToolRegistry.watch',
  problem: 'the registry is watched already',
  fix: 'one inspector for each registry, and inspector.close() before the next',
};

/** A call that somebody watches, before it is made. */
export interface WatchedCall {
  readonly request: CallRequest;
  readonly scope: CallScope;
  readonly attempt: number | undefined;
  /** Makes the call, with what the watcher adds to it. To be called once. */
  make(added?: WatcherAdditions): Invocation | Promise<Invocation>;
}

/** What a watcher adds to a call. */
export interface WatcherAdditions {
  /** Asked after all others; a no is what the model is told. */
  readonly policy?: ToolPolicy;
  /** Hears of the end of each step. */
  readonly onStep?: (step: CallStep) => void;
}

/**
 * Sees the calls of a registry and of its views, whoever makes them, and may hold them: an inspector. What it gives is
 * what `make` gave.
 */
export interface CallWatcher {
  aroundCall(call: WatchedCall): Invocation | Promise<Invocation>;
}

/** A call with what it would be made with if nobody watched. */
interface CallParts extends Pick<WatchedCall, 'request' | 'scope'>, Partial<Pick<WatchedCall, 'attempt'>> {
  readonly environment: RecordedEnvironment;
}

/** Makes a call through the watcher of its registry, where it has one. */
export function makeWatched(
  watcher: CallWatcher | undefined,
  { environment, request, scope, attempt }: CallParts,
): Invocation | Promise<Invocation> {
  const make = ({ policy, onStep }: WatcherAdditions = {}): Invocation | Promise<Invocation> => {
    const { policies = [] } = environment;
    const asked = policy === undefined ? {} : { policies: [...policies, policy] };
    return makeCall({ ...environment, ...asked, ...(onStep ? { onStep } : {}) }, request, { scope, attempt });
  };
  return watcher === undefined ? make() : watcher.aroundCall({ request, scope, attempt, make });
}

/** The same where the record of the call is not wanted. */
export async function watchedResult(
  watcher: CallWatcher,
  { environment, ...call }: Omit<CallParts, 'environment'> & { readonly environment: CallEnvironment },
): Promise<ToolResult> {
  const { result } = await makeWatched(watcher, {
    ...call,
    environment: { ...environment, isRecorded: true },
  });
  return result;
}
