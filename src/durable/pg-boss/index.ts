export { type PgBossEngineOptions, pgBossEngine } from './pg-boss-engine.js';
