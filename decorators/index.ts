import '../src/metadata/extensible-reflect.js';
import 'reflect-metadata';

export type { ArgsOptions } from '../src/contract/args-options.js';
export { Integer } from '../src/contract/integer.js';
export type { ParamOptions } from '../src/contract/param-options.js';
export { ToolContext } from '../src/contract/tool-context.js';
export type { ToolOptions } from '../src/contract/tool-options.js';
export type { ToolsetOptions } from '../src/contract/toolset-options.js';
export { Args } from './args.js';
export { Context } from './context.js';
export { describeClass } from './describe-class.js';
export { Param } from './param.js';
export { Tool } from './tool.js';
export { Toolset } from './toolset.js';
