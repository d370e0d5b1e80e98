export { AgentSessions } from '../../../../src/dev/cli/agent-command.js';
