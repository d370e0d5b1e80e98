export { createInspector, type Inspector, type ListenOptions } from './create-inspector.js';
export type {
  ChosenScope,
  InspectorOptions,
  ToolSurrounding,
  WrittenTests,
} from './options.js';
