export type { HostPattern } from '../network/host-pattern.js';
export {
  WebAccess,
  type WebAccessOptions,
  WebFault,
  type WebRequest,
  type WebResponse,
} from '../network/web-access.js';
export {
  type AuthSource,
  type OpenApiOptions,
  type Operation,
  type OperationBody,
  type OperationParameter,
  type ParameterPlace,
  type SecurityScheme,
  toolsFromOpenApi,
} from './openapi-tools.js';
