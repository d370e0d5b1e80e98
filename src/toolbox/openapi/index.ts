export {
  type HostPattern,
  WebAccess,
  type WebAccessOptions,
  WebFault,
  type WebRequest,
  type WebResponse,
} from '../network/web-access.js';
export { type AuthSource, type OpenApiOptions, toolsFromOpenApi } from './openapi-tools.js';
export type {
  Operation,
  OperationBody,
  OperationParameter,
  ParameterPlace,
  SecurityScheme,
} from './read-document.js';
