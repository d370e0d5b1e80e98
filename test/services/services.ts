import { randomBytes } from 'node:crypto';
import { describe } from '@jest/globals';
import { sandboxShell } from 'toolwright/toolbox/sandbox';

/** A real service for tests. */
export interface TestService {
  readonly url: string;
  /** A unique name for a schema, a queue or a key prefix. */
  newName(): string;
}

/** Different for each process that uses the same service, even from another machine. */
const PROCESS = randomBytes(6).toString('hex');

let names = 0;

/** PostgreSQL with a database for this run, if there is one; each suite creates its own schema and drops it. */
export function postgres(): TestService | undefined {
  return serviceAt(process.env.TOOLWRIGHT_TEST_POSTGRES);
}

/** Redis, if there is one; each suite uses its own key prefix. */
export function redis(): TestService | undefined {
  return serviceAt(process.env.TOOLWRIGHT_TEST_REDIS);
}

/** `describe` with PostgreSQL; if it is missing, the tests are skipped and the end of the run reports that. */
export function describePostgres(title: string, tests: (postgres: TestService) => void): void {
  describeWith(postgres(), { title, mark: '[needs PostgreSQL]', tests });
}

/** Like {@link describePostgres}, for Redis. */
export function describeRedis(title: string, tests: (redis: TestService) => void): void {
  describeWith(redis(), { title, mark: '[needs Redis]', tests });
}

/** `describe` for tests that run commands in a sandbox; if that is impossible, they are skipped and reported. */
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

/** Only letters, digits and underscores, so that SQL needs no quotes. */
function newName(): string {
  names += 1;
  return `toolwright_test_${PROCESS}_${names}`;
}
