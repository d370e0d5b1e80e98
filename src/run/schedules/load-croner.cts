/** Loads croner for the first cron expression or local time. */
export function loadCroner(): typeof import('croner') {
  return require('croner');
}
