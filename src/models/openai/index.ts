export { OpenAIProvider, type OpenAIProviderOptions } from './openai-provider.js';
