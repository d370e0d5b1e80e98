export { ScriptedProvider, type ScriptedReply } from './scripted-provider.js';
export {
  type HarnessOverride,
  type ToolHarness,
  type ToolHarnessOptions,
  toolHarness,
} from './tool-harness.js';
