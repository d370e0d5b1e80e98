export type { HostPattern } from '../network/host-pattern.js';
export {
  WebAccess,
  type WebAccessOptions,
  WebFault,
  type WebRequest,
  type WebResponse,
} from '../network/web-access.js';
export {
  type SearxngOptions,
  SearxngSearch,
  type WebHit,
  type WebQuery,
  WebSearch,
  WebSearchTools,
  WebTools,
  type WebToolsOptions,
  webTools,
} from './web-tools.js';
