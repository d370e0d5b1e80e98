import type { JobPage, JobQuery, StoredJob } from '../contract/job-store.js';
import { oneOf, optionTable } from '../kernel/options.js';
import { checkOptions } from './author-fault.js';

const DEFAULT_PAGE = 100;
const LARGEST_PAGE = 1000;

const QUERY = optionTable<JobQuery>('the query', {
  status: oneOf('waiting', 'running', 'completed'),
  after: { accepts: (value) => placeOf(value) !== undefined, fix: 'the `next` of a page' },
  limit: {
    accepts: (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= LARGEST_PAGE,
    fix: `a whole number from 1 to ${LARGEST_PAGE}`,
  },
});

/** A place in a list: behind the job that changed at this time and has this id. */
interface JobPlace {
  readonly changedAt: number;
  readonly jobId: string;
}

/** Reads which jobs are wanted. Throws `InvalidOptions` (521) for what is no query. */
export function readJobQuery(query: JobQuery): {
  readonly status: JobQuery['status'];
  readonly after: JobPlace | undefined;
  readonly limit: number;
} {
  checkOptions(query, QUERY);
  const { status, after, limit = DEFAULT_PAGE } = query;
  return { status, after: placeOf(after), limit };
}

/** The page of jobs of which one more than wanted was looked for. */
export function jobPage(jobs: readonly StoredJob[], limit: number): JobPage {
  const page = jobs.slice(0, limit);
  const last = page.at(-1);
  if (jobs.length <= limit || last === undefined) return { jobs: page };
  return { jobs: page, next: JSON.stringify([last.changedAt, last.job.id]) };
}

function placeOf(after: unknown): JobPlace | undefined {
  if (typeof after !== 'string') return undefined;
  try {
    const place: unknown = JSON.parse(after);
    const [changedAt, jobId] = Array.isArray(place) ? (place as readonly unknown[]) : [];
    return typeof changedAt === 'number' && typeof jobId === 'string' ? { changedAt, jobId } : undefined;
  } catch {
    return undefined;
  }
}
