export { type AiSdkProvider, type FromAiSdkOptions, fromAiSdk } from './from-ai-sdk.js';
export type {
  AiSdkExecution,
  AiSdkProviderTool,
  AiSdkSchema,
  AiSdkTool,
  AiSdkToolOutput,
} from './to-ai-sdk-tools.js';
export {
  type AiSdkCall,
  type AiSdkScope,
  type AiSdkToolsOptions,
  toAiSdkTools,
} from './to-ai-sdk-tools.js';
