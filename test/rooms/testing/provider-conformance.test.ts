import { describe, test } from '@jest/globals';
import { providerConformance } from 'toolwright/testing';
import { PROVIDERS } from './conformance-backends.js';

describe.each(PROVIDERS)('$name', (provider) => {
  for (const { title, run } of providerConformance(provider)) test(title, run);
});
