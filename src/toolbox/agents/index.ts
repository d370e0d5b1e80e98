export type { AgentsOptions, NamedAgent } from './agent-options.js';
export {
  AgentTools,
  agentTools,
  type Forbids,
  HandOffs,
  type HandOffsOptions,
  HandOffTools,
  type OfferOptions,
} from './agent-tools.js';
export { Agents, type AgentTask } from './agents.js';
