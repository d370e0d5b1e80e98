export type {
  PostgresClient,
  PostgresOptions,
  PostgresPool,
  PostgresQuery,
  PostgresRows,
} from './database.js';
export {
  PostgresConversationStore,
  type PostgresConversationStoreOptions,
} from './postgres-conversation-store.js';
export { type PostgresCloseOptions, PostgresRunStore } from './postgres-run-store.js';
