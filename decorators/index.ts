import '../src/core/metadata/extensible-reflect.js';
import 'reflect-metadata/lite';

export {
  type ArgsOptions,
  Integer,
  type ParamOptions,
  type PromptOptions,
  type ResourceOptions,
  type ToolOptions,
  type ToolsetOptions,
} from '../src/core/contract/declaration.js';
export { ToolContext } from '../src/core/contract/tool-context.js';
export { Args } from './args.js';
export { Completion } from './completion.js';
export { Context } from './context.js';
export { describeClass } from './describe-class.js';
export { Param } from './param.js';
export { Prompt } from './prompt.js';
export { Public } from './public.js';
export { Resource } from './resource.js';
export { Tool } from './tool.js';
export { Toolset } from './toolset.js';
