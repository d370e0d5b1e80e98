import pg from 'pg';

// Stops what findServices started, and drops the database that it created.
export default async function stopServices() {
  await dropDatabase(globalThis.toolwrightTestDatabase);
  await globalThis.toolwrightTestPostgres?.stop();
}

/** If the database cannot be dropped, for example because its server is gone, the tests do not fail. */
async function dropDatabase(database) {
  if (database === undefined) return;
  globalThis.toolwrightTestDatabase = undefined;
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(`DROP DATABASE IF EXISTS ${database.name} WITH (FORCE)`);
  } catch (error) {
    console.warn(`The test database ${database.name} could not be dropped: ${error.message}`);
  } finally {
    await client.end().catch(() => {});
  }
}
