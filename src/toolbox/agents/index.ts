export type { AgentsOptions, NamedAgent } from './agent-options.js';
export { AgentTools, agentTools, type Forbids, type OfferOptions } from './agent-tools.js';
export { Agents, type AgentTask } from './agents.js';
export { HandOffs, type HandOffsOptions, HandOffTools } from './hand-offs.js';
