export { BuiltinTools } from './builtin-tools.js';
export { calculateTool } from './calculate-tool.js';
export { type CurrentTimeOptions, createCurrentTimeTool, getCurrentTimeTool } from './current-time-tool.js';
