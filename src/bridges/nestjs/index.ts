import '../../metadata/extensible-reflect.js';
import 'reflect-metadata';

export type {
  OwnedRun,
  OwnerScope,
  ToolwrightModuleAsyncOptions,
  ToolwrightModuleOptions,
  ToolwrightOptionsFactory,
} from './module-options.js';
export type { AnswerOptions, RunConfig, RunOptions } from './run-options.js';
export type { OwnerAnswer } from './run-surroundings.js';
export { type ToolCallInfo, type ToolContextType, toolCallOf } from './tool-call.js';
export { ToolwrightModule } from './toolwright-module.js';
export { ToolwrightService } from './toolwright-service.js';
