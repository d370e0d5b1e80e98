// Ends what findServices started.
export default async function stopServices() {
  await globalThis.toolwrightTestPostgres?.stop();
}
