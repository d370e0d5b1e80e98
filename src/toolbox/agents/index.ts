export {
  AgentTools,
  agentTools,
  type Forbids,
  HandOffs,
  type HandOffsOptions,
  HandOffTools,
  type OfferOptions,
} from './agent-tools.js';
export { Agents, type AgentsOptions, type AgentTask, type NamedAgent } from './agents.js';
