export { type SkillToolsOptions, skillTools } from './skill-tools.js';
