export { MemoryRunStore, type MemoryRunStoreOptions } from './memory-run-store.js';
export { SqliteRunStore, type SqliteRunStoreOptions } from './sqlite-run-store.js';
