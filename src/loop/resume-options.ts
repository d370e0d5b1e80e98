import { plainJson } from '../checking/plain-json.js';
import type { CallScope } from '../contract/call-scope.js';
import { checkOptions } from '../errors/invalid-options.js';
import { FILLED_TEXT, type OptionRule, RECORD } from '../kernel/option-rules.js';
import { optionTable } from '../kernel/options.js';
import type { ToolLoopConfig } from './loop-config.js';

/** The config of a resume: the run brings its model along. */
export interface ResumeConfig extends Omit<ToolLoopConfig, 'model'> {
  /** Asked only where the state is of a version that kept no model. */
  readonly model?: string;
}

/** On whose behalf a run goes on, and who answered. */
export interface ResumeOptions {
  /** The scope of the run's owner: never that of whoever answered for them. */
  readonly scope?: CallScope;
  /** Who answered: any JSON. It is recorded with the calls, and gives nobody any rights. */
  readonly answeredBy?: unknown;
  /** Another model for the rest of the run; default: the one that it has asked so far. */
  readonly model?: string;
}

const JSON_VALUE: OptionRule = {
  accepts: (value) => plainJson(value) !== undefined,
  fix: "any JSON: { clerk: 7 }, 'clerk 7'",
};

const OWNERS = 'scope: { owner, data, … }, which is the scope of the run’s owner';

const TABLE = optionTable<ResumeOptions>(
  'a resume',
  { scope: RECORD, answeredBy: JSON_VALUE, model: FILLED_TEXT },
  { owner: OWNERS, data: OWNERS },
);

/**
 * What the fourth argument of a resume says; a plain scope is the owner's.
 *
 * @throws InvalidOptionsError (521) for options that are wrong, or that stand in a scope.
 */
export function readResumeOptions(given: ResumeOptions | CallScope): ResumeOptions {
  const isOptions = Array.from(TABLE.rules.keys()).some((name) => Object.hasOwn(given, name));
  if (!isOptions) return { scope: given as CallScope };
  checkOptions(given, TABLE);
  const options = given as ResumeOptions;
  return { ...options, answeredBy: plainJson(options.answeredBy) };
}
