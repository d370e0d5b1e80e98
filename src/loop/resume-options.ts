import { plainJson } from '../checking/plain-json.js';
import { type CallScope, SCOPE, SCOPE_OPTION } from '../contract/call-scope.js';
import { MODEL } from '../contract/llm-provider.js';
import { type InvalidOption, invalidOptions, refuseOptions } from '../errors/invalid-options.js';
import { isRecord } from '../kernel/is-record.js';
import { misspeltName } from '../kernel/nearest-name.js';
import type { OptionRule } from '../kernel/option-rules.js';
import { optionTable } from '../kernel/options.js';
import { LOOP_ALIASES, LOOP_RULES, type ToolLoopConfig } from './loop-config.js';
import { ownerFaults } from './run-owner.js';

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

export const JSON_VALUE: OptionRule = {
  accepts: (value) => plainJson(value) !== undefined,
  fix: "any JSON: { clerk: 7 }, 'clerk 7'",
};

const OWNERS = 'scope: { owner, data, … }, which is the scope of the run’s owner';

const OPTIONS = optionTable<ResumeOptions>(
  'a resume',
  { scope: SCOPE_OPTION, answeredBy: JSON_VALUE, model: MODEL },
  { owner: OWNERS, data: OWNERS },
);

/** The run brings its model along. */
const CONFIG = optionTable<ResumeConfig>('the loop’s config', { ...LOOP_RULES, model: MODEL }, LOOP_ALIASES);

/** A slip in the name of an option does not make a scope of the options. */
function isOfResume(name: string): boolean {
  return (
    OPTIONS.rules.has(name) || (!SCOPE.rules.has(name) && misspeltName(name, RESUME_NAMES) !== undefined)
  );
}

const RESUME_NAMES = Array.from(OPTIONS.rules.keys());

/** What a resume is given beside the run and its answers. */
interface GivenResume {
  readonly config: ResumeConfig;
  readonly options: ResumeOptions | CallScope;
  /** What else has been found wrong. */
  readonly others?: readonly InvalidOption[];
}

/**
 * What the fourth argument of a resume says; a plain scope is the owner's.
 *
 * @throws InvalidOptionsError (521) for options that are wrong, or that stand in a scope, and for a wrong config.
 */
export function readResume({ config, options, others = [] }: GivenResume): ResumeOptions {
  const isScope = !(isRecord(options) && Object.keys(options).some(isOfResume));
  const read = (isScope ? { scope: options } : options) as ResumeOptions;
  refuseOptions([
    ...invalidOptions(config, CONFIG),
    ...(isScope ? invalidOptions(options, SCOPE) : invalidOptions(options, OPTIONS)),
    ...ownerFaults(read.scope),
    ...others,
  ]);
  return { ...read, answeredBy: plainJson(read.answeredBy) };
}
