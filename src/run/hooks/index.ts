export { type AllowByRoleOptions, allowByRole, type RoleTools } from './allow-by-role.js';
export { type CacheResultsOptions, cacheResults } from './cache-results.js';
export { type MarkUntrustedOptions, markUntrusted } from './mark-untrusted.js';
export {
  type MaskedPattern,
  type MaskPatternsOptions,
  maskPatterns,
  PERSONAL_DATA,
} from './mask-patterns.js';
export { type RateLimitOptions, rateLimit } from './rate-limit.js';
