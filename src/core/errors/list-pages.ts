import type { JobPage, JobQuery, StoredJob } from '../contract/job-store.js';
import type { RunPage, RunQuery, RunSummary } from '../contract/run-checkpoint.js';
import { type OptionTable, oneOf, optionTable } from '../kernel/options.js';
import { checkOptions } from './author-fault.js';

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

const PLACES = {
  after: {
    accepts: (value: unknown) => placeOf(value) !== undefined,
    fix: 'the `next` of the previous page',
  },
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

/** A position in a list: after the record with this time and id. */
interface ListPlace {
  readonly changedAt: number;
  readonly id: string;
}

/** A query in the form that stores use. */
export interface ReadQuery<Query extends RunQuery | JobQuery = RunQuery | JobQuery> {
  readonly status: Query['status'];
  readonly after: ListPlace | undefined;
  readonly limit: number;
}

/** Reads a query for runs. Throws `InvalidOptions` (521) if it is invalid. */
export function readQuery(query: RunQuery): ReadQuery<RunQuery> {
  return read(query, RUNS);
}

/** Reads a query for jobs. Throws `InvalidOptions` (521) if it is invalid. */
export function readJobQuery(query: JobQuery): ReadQuery<JobQuery> {
  return read(query, JOBS);
}

function read<Query extends RunQuery | JobQuery>(query: Query, table: OptionTable): ReadQuery<Query> {
  checkOptions(query, table);
  const { status, after, limit = DEFAULT_PAGE } = query;
  return { status, after: placeOf(after), limit };
}

/** Makes a page of `limit` runs from a search for one more. */
export function pageAfter(runs: readonly RunSummary[], limit: number): RunPage {
  return { runs: runs.slice(0, limit), ...nextOf(runs, limit, runs[limit - 1]?.runId) };
}

/** Makes a page of `limit` jobs from a search for one more. */
export function jobPage(jobs: readonly StoredJob[], limit: number): JobPage {
  return { jobs: jobs.slice(0, limit), ...nextOf(jobs, limit, jobs[limit - 1]?.job.id) };
}

function nextOf(
  found: readonly Pick<ListPlace, 'changedAt'>[],
  limit: number,
  lastId: string | undefined,
): { readonly next?: string } {
  if (found.length <= limit) return {};
  return { next: JSON.stringify([found[limit - 1]?.changedAt, lastId]) };
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
