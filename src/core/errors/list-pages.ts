import type { JobPage, JobQuery, StoredJob } from '../contract/job-store.js';
import type { RunPage, RunQuery, RunSummary } from '../contract/run-checkpoint.js';
import { type OptionTable, oneOf, optionTable } from '../kernel/options.js';
import { checkOptions } from './author-fault.js';

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

const PLACES = {
  after: { accepts: (value: unknown) => placeOf(value) !== undefined, fix: 'the `next` of a page' },
  limit: {
    accepts: (value: unknown) =>
      Number.isInteger(value) && Number(value) >= 1 && Number(value) <= LARGEST_PAGE,
    fix: `a whole number from 1 to ${LARGEST_PAGE}`,
  },
};

const RUNS = optionTable<RunQuery>('the query', {
  status: oneOf('running', 'suspended', 'ended'),
  ...PLACES,
});
const JOBS = optionTable<JobQuery>('the query', {
  status: oneOf('waiting', 'running', 'completed'),
  ...PLACES,
});

/** A place in a list: behind what changed at this time and has this id. */
interface ListPlace {
  readonly changedAt: number;
  readonly id: string;
}

/** A query as a store uses it. */
interface ReadQuery<Query extends RunQuery | JobQuery> {
  readonly status: Query['status'];
  readonly after: ListPlace | undefined;
  readonly limit: number;
}

/** Reads which runs are wanted. Throws `InvalidOptions` (521) for what is no query. */
export function readQuery(query: RunQuery): ReadQuery<RunQuery> {
  return read(query, RUNS);
}

/** Reads which jobs are wanted. Throws `InvalidOptions` (521) for what is no query. */
export function readJobQuery(query: JobQuery): ReadQuery<JobQuery> {
  return read(query, JOBS);
}

function read<Query extends RunQuery | JobQuery>(query: Query, table: OptionTable): ReadQuery<Query> {
  checkOptions(query, table);
  const { status, after, limit = DEFAULT_PAGE } = query;
  return { status, after: placeOf(after), limit };
}

/** The page of runs of which one more than wanted was looked for. */
export function pageAfter(runs: readonly RunSummary[], limit: number): RunPage {
  return { runs: runs.slice(0, limit), ...nextOf(runs, limit, ({ runId }) => runId) };
}

/** The page of jobs of which one more than wanted was looked for. */
export function jobPage(jobs: readonly StoredJob[], limit: number): JobPage {
  return { jobs: jobs.slice(0, limit), ...nextOf(jobs, limit, ({ job }) => job.id) };
}

function nextOf<Found extends Pick<ListPlace, 'changedAt'>>(
  found: readonly Found[],
  limit: number,
  idOf: (last: Found) => string,
): { readonly next?: string } {
  const last = found[limit - 1];
  return found.length <= limit || last === undefined
    ? {}
    : { next: JSON.stringify([last.changedAt, idOf(last)]) };
}

function placeOf(after: unknown): ListPlace | undefined {
  if (typeof after !== 'string') return undefined;
  try {
    const place: unknown = JSON.parse(after);
    const [changedAt, id] = Array.isArray(place) ? (place as readonly unknown[]) : [];
    return typeof changedAt === 'number' && typeof id === 'string' ? { changedAt, id } : undefined;
  } catch {
    return undefined;
  }
}
