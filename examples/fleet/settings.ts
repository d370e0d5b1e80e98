/** The settings that each process of the fleet reads from its environment. */
export interface Settings {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** Schema of the database and name of the queue, so that several fleets can share a server. */
  readonly name: string;
  readonly leaseMs: number;
  /** The minimum duration of a report. */
  readonly reportMs: number;
}

/** An invalid environment, described in one line. */
export class SettingFault extends Error {}

export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const {
    DATABASE_URL: databaseUrl = 'postgres://postgres@127.0.0.1:5432/postgres',
    REDIS_URL: redisUrl = 'redis://127.0.0.1:6379',
    FLEET_NAME: name = 'fleet_example',
  } = environment;
  if (!/^[a-z][a-z0-9_]{0,62}$/.test(name))
    throw new SettingFault('FLEET_NAME is the name of a schema: small letters, digits and _');
  return {
    databaseUrl,
    redisUrl,
    name,
    leaseMs: readCount(environment, { variable: 'FLEET_LEASE_MS', usual: 10_000 }),
    reportMs: readCount(environment, { variable: 'FLEET_REPORT_MS', usual: 2_000 }),
  };
}

/** The port of the web process; the workers use the next ones. 0: any free ports. */
export function readPort(environment: NodeJS.ProcessEnv): number {
  return readCount(environment, { variable: 'PORT', usual: 8080 });
}

function readCount(
  environment: NodeJS.ProcessEnv,
  { variable, usual }: { readonly variable: string; readonly usual: number },
): number {
  const given = environment[variable];
  const count = given === undefined ? usual : Number(given);
  if (Number.isInteger(count) && count >= 0) return count;
  throw new SettingFault(`${variable} must be a whole number, and is '${given}'`);
}
