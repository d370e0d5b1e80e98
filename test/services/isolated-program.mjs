// Runs in a network without services. Finds or starts the services as Jest does, and prints the result.
import { existsSync } from 'node:fs';
import pg from 'pg';
import findServices from './find-services.mjs';
import stopServices from './stop-services.mjs';

await findServices();
const { TOOLWRIGHT_TEST_POSTGRES: url, TOOLWRIGHT_TEST_REDIS: redis } = process.env;
const client = new pg.Client({ connectionString: url });
await client.connect();
const { rows } = await client.query("SELECT current_setting('data_directory') AS folder, version()");
await client.end();
const [{ folder, version }] = rows;
const wasThere = existsSync(folder);
await stopServices();
console.log(JSON.stringify({ url, redis, folder, version, wasThere, isThere: existsSync(folder) }));
