import pg from 'pg';

// Ends what findServices started, and drops the database that it made.
export default async function stopServices() {
  await dropDatabase(globalThis.toolwrightTestDatabase);
  await globalThis.toolwrightTestPostgres?.stop();
}

/** What cannot be dropped any more, as its server is gone, is not a failure of the tests. */
async function dropDatabase(database) {
  if (database === undefined) return;
  globalThis.toolwrightTestDatabase = undefined;
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(`DROP DATABASE IF EXISTS ${database.name} WITH (FORCE)`);
  } catch (error) {
    console.warn(`The database ${database.name} of the tests is left: ${error.message}`);
  } finally {
    await client.end().catch(() => {});
  }
}
