import { type CallScope, SCOPE } from '../contract/call-scope.js';
import type { Message } from '../contract/message.js';
import { invalidOptions, refuseOptions } from '../errors/invalid-options.js';
import { areRight, optionTable } from '../kernel/options.js';
import { LOOP_ALIASES, LOOP_RULES, type ToolLoopConfig } from './loop-config.js';
import { historyFaults } from './read-history.js';
import { ownerFaults } from './run-owner.js';

const CONFIG = optionTable<ToolLoopConfig>('the loop’s config', LOOP_RULES, LOOP_ALIASES);

/** What a run is given. */
export interface GivenRun {
  readonly config: ToolLoopConfig;
  readonly scope: CallScope;
  readonly messages: readonly Message[];
}

/**
 * Checks what a run is given before anything is asked.
 *
 * @throws InvalidOptionsError (521): a run cannot begin with what its author got wrong.
 */
export function checkRun({ config, scope, messages }: GivenRun): void {
  const isOwned = scope?.owner !== undefined;
  const history = historyFaults(messages);
  if (areRight(config, CONFIG) && areRight(scope, SCOPE) && !isOwned && history.length === 0) return;
  refuseOptions([
    ...invalidOptions(config, CONFIG),
    ...invalidOptions(scope, SCOPE),
    ...ownerFaults(scope),
    ...history,
  ]);
}
