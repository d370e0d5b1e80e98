import { randomBytes } from 'node:crypto';
import { describe } from '@jest/globals';
import { sandboxShell } from 'toolwright/toolbox/sandbox';

/** A real service for the tests of one file. */
export interface TestService {
  readonly url: string;
  /** A name that nobody else uses at the same time, for a schema, a queue or the prefix of keys. */
  newName(): string;
}

/** Another process, also one of another machine, that uses the same service has another one. */
const PROCESS = randomBytes(6).toString('hex');

let names = 0;

/**
 * A real PostgreSQL, and a database of this run; every suite works in a schema of its own and drops it. `undefined`
 * where there is none.
 */
export function postgres(): TestService | undefined {
  return serviceAt(process.env.TOOLWRIGHT_TEST_POSTGRES);
}

/** A real Redis; every suite works under a prefix of its own. `undefined` where there is none. */
export function redis(): TestService | undefined {
  return serviceAt(process.env.TOOLWRIGHT_TEST_REDIS);
}

/** `describe` with PostgreSQL; without one its tests are skipped, and the end of the run says so. */
export function describePostgres(title: string, tests: (postgres: TestService) => void): void {
  describeWith(postgres(), { title, mark: '[needs PostgreSQL]', tests });
}

/** The same with Redis. */
export function describeRedis(title: string, tests: (redis: TestService) => void): void {
  describeWith(redis(), { title, mark: '[needs Redis]', tests });
}

/** `describe` where commands can be run in a sandbox; elsewhere its tests are skipped, and the end of the run says so. */
export function describeSandbox(title: string, tests: () => void): void {
  if (canSandbox()) describe(title, tests);
  else describe.skip(`${title} [needs sandbox]`, tests);
}

function canSandbox(): boolean {
  try {
    sandboxShell({ folder: import.meta.dirname });
    return true;
  } catch {
    return false;
  }
}

interface Suite {
  readonly title: string;
  readonly mark: string;
  readonly tests: (service: TestService) => void;
}

function describeWith(service: TestService | undefined, { title, mark, tests }: Suite): void {
  if (service !== undefined) describe(title, () => tests(service));
  else describe.skip(`${title} ${mark}`, () => tests({ url: 'none:', newName: () => 'none' }));
}

function serviceAt(url: string | undefined): TestService | undefined {
  if (url === undefined || url === '') return undefined;
  return { url, newName };
}

/** Of letters, digits and underscores only: good for names in SQL and for keys. */
function newName(): string {
  names += 1;
  return `toolwright_test_${PROCESS}_${names}`;
}
