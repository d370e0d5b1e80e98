export {
  BuiltinTools,
  type CurrentTimeOptions,
  calculateTool,
  createCurrentTimeTool,
  getCurrentTimeTool,
} from './builtin-tools.js';
