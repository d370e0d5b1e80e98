export {
  type PostgresClient,
  type PostgresCloseOptions,
  PostgresConversationStore,
  type PostgresConversationStoreOptions,
  type PostgresOptions,
  type PostgresPool,
  type PostgresQuery,
  type PostgresRows,
  PostgresRunStore,
} from './postgres-stores.js';
