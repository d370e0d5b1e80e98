export { AgentSessions } from '../../../../src/dev/cli/agent-sessions.js';
