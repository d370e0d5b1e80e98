import type { RunCheckpoint, RunPage, RunQuery, RunSummary } from '../contract/run-checkpoint.js';
import type { RunState } from '../contract/run-state.js';
import { type OptionRule, oneOf, optionTable } from '../kernel/options.js';
import { checkArguments, checkOptions } from './author-fault.js';
import { ToolwrightError } from './toolwright-error.js';

const AGE: OptionRule = {
  accepts: (value) => typeof value === 'number' && value >= 0,
  fix: 'milliseconds, 0 or more',
};

/** What is no age must not pass for none, or every run would be forgotten. */
export function checkAge(ageMs: number): void {
  checkArguments({ of: 'removeOlderThan', given: { ageMs }, rules: { ageMs: AGE } });
}

/** Why a store does not take a state: it would undo what somebody else does, or has done. */
export function refusedSave(runId: string): ToolwrightError {
  return new ToolwrightError(
    'RunClaimed',
    `Run '${runId}' is claimed, under way or over, or a newer state of it is kept.`,
  );
}

/** Why a run does not begin. */
export function refusedBegin(runId: string): ToolwrightError {
  return new ToolwrightError('RunClaimed', `A run '${runId}' is kept already.`);
}

/** What a store keeps beside a state, so that it finds the runs whose answers come too late. */
interface KeptExpiry {
  /** When the first of its answers comes too late. */
  readonly expiresAt: number | null;
  /** The conversation whose turn it is. */
  readonly turnOf: string | null;
}

/** When the first answer of a state comes too late; a run under way waits for none. */
export function expiryOf(state: RunState | RunCheckpoint): KeptExpiry {
  const pending = 'pending' in state ? state.pending : [];
  const times = pending.flatMap(({ expiresAt }) => (expiresAt === undefined ? [] : [Date.parse(expiresAt)]));
  const known = times.filter((time) => !Number.isNaN(time));
  return { expiresAt: known.length === 0 ? null : Math.min(...known), turnOf: state.turnOf ?? null };
}

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

const QUERY = optionTable<RunQuery>('the query', {
  status: oneOf('running', 'suspended', 'ended'),
  after: { accepts: (value) => placeOf(value) !== undefined, fix: 'the `next` of a page' },
  limit: {
    accepts: (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= LARGEST_PAGE,
    fix: `a whole number from 1 to ${LARGEST_PAGE}`,
  },
});

/** A place in a list: behind the run that changed at this time and has this id. */
type ListPlace = Pick<RunSummary, 'changedAt' | 'runId'>;

/** A query as a store uses it. */
interface ReadQuery extends Pick<RunQuery, 'status'> {
  readonly after: ListPlace | undefined;
  readonly limit: number;
}

/** Reads which runs are wanted. Throws `InvalidOptions` (521) for what is no query. */
export function readQuery(query: RunQuery): ReadQuery {
  checkOptions(query, QUERY);
  const { status, after, limit = DEFAULT_PAGE } = query;
  return { status, after: placeOf(after), limit };
}

/** The page of runs of which one more than wanted was looked for. */
export function pageAfter(runs: readonly RunSummary[], limit: number): RunPage {
  const page = runs.slice(0, limit);
  const last = page.at(-1);
  if (runs.length <= limit || last === undefined) return { runs: page };
  return { runs: page, next: JSON.stringify([last.changedAt, last.runId]) };
}

function placeOf(after: unknown): ListPlace | undefined {
  if (typeof after !== 'string') return undefined;
  try {
    const place: unknown = JSON.parse(after);
    const [changedAt, runId] = Array.isArray(place) ? (place as readonly unknown[]) : [];
    return typeof changedAt === 'number' && typeof runId === 'string' ? { changedAt, runId } : undefined;
  } catch {
    return undefined;
  }
}
