// Jest's globalTeardown: ends what findServices started.
// Jest demands a default export.
export default async function stopServices() {
  await globalThis.toolwrightTestPostgres?.stop();
}
