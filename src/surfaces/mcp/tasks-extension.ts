/** The extension of MCP 2026-07-28 for calls that are answered later (SEP-2663). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
