import '../../core/metadata/extensible-reflect.js';
import 'reflect-metadata/lite';

export type { ChatRequestOptions } from './application.js';
export type { OwnerAnswer } from './application-runs.js';
export { type ToolCallInfo, type ToolContextType, toolCallOf } from './calls.js';
export type {
  AnswerOptions,
  ChatSettings,
  ConversationSettings,
  InspectorSettings,
  OwnedRun,
  OwnerScope,
  RunConfig,
  RunOptions,
  ToolwrightModuleAsyncOptions,
  ToolwrightModuleOptions,
  ToolwrightOptionsFactory,
} from './options.js';
export type { McpRouteOptions } from './toolwright-module.js';
export { type ChatRouteOptions, ToolwrightModule } from './toolwright-module.js';
export { ToolwrightService } from './toolwright-service.js';
