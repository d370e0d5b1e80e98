/** croner, loaded with the first cron expression or local time. */
export function loadCroner(): typeof import('croner') {
  return require('croner');
}
