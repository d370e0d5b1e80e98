export { MemoryRunStore, type MemoryRunStoreOptions } from './memory/memory-run-store.js';
export { SqliteRunStore, type SqliteRunStoreOptions } from './sqlite/sqlite-run-store.js';
