export type { PostgresOptions } from './database.js';
export type { PostgresClient, PostgresPool, PostgresQuery, PostgresRows } from './pool.js';
export {
  PostgresConversationStore,
  type PostgresConversationStoreOptions,
} from './postgres-conversation-store.js';
export { type PostgresCloseOptions, PostgresRunStore } from './postgres-run-store.js';
